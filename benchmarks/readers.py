"""Readers of traces: CPU per row of a regular file, and of one with a line in every block that is rejected.

Blocks of regular lines are parsed by column, others line by line. `ratio` is the time of a row over that of a
plain loop over the lines of the same file which only splits each of them. Rows are generated.

python -m benchmarks.readers --json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.measuring import interleaved, show
from precede.traces.reading import Reading

NODES: Final = 200
BAD: Final = "this line has too many words for any of these formats , , , , , , , , , ,\n"
BAD_EVERY: Final = 3_000

LINES: Final[dict[str, tuple[str, str, str]]] = {
    "ns2": ("ns2", "", '$ns_ at {t:.2f} "$node_({a}) setdest {x:.2f} {y:.2f} {speed:.2f}"\n'),
    "one, contacts": ("one", "", "{t:.1f} CONN {pair} {state}\n"),
    "one, movement": ("one", "0 {last:.1f} 0 1000 0 1000\n", "{t:.1f} n{a} {x:.2f} {y:.2f}\n"),
    "tij": ("tij", "", "{window} {a} {b}\n"),
    "positions, with blanks": ("positions", "node time x y\n", "{a} {t:.2f} {x:.2f} {y:.2f}\n"),
    "positions (CSV)": ("positions", "node,time,x,y\n", "{a},{t:.2f},{x:.2f},{y:.2f}\n"),
    "contacts (CSV)": ("contacts", "a,b,start,end\n", "n{a},n{b},{t:.1f},{end:.1f}\n"),
    "gps": (
        "gps",
        "node,time,latitude,longitude\n",
        "{a},{seconds},{latitude:.5f},{longitude:.5f}\n",
    ),
}
"""For each row of the table the format, the first line of a file, and its other lines."""


def write(path: Path, first: str, line: str, rows: int, bad_every: int | None) -> None:
    """Write a file of so many rows, in order of time."""
    random = Random(1)
    with path.open("w") as out:
        out.write(first.format(last=rows / 10))
        for number in range(rows):
            pair = number // 2 % (NODES - 1)  # up, then down
            at = number / 10
            fields = {
                "a": number % NODES,
                "b": (number + 1) % NODES,
                "pair": f"n{pair} n{pair + 1}",
                "state": "up" if number % 2 == 0 else "down",
                "t": at,
                "end": at + 5,
                "seconds": number // NODES * 10,
                "window": number // 50 * 20,
                "x": random.uniform(0, 1000),
                "y": random.uniform(0, 1000),
                "speed": random.uniform(1, 5),
                "latitude": 48 + number % NODES / 1e3,
                "longitude": 2 + number / rows / 10,
            }
            out.write(line.format(**fields))
            if bad_every is not None and number % bad_every == bad_every // 2:
                out.write(BAD)


def read(path: Path, format_name: str) -> int:
    """Read the rows of a trace as `precede ingest` does. Return how many were rejected."""
    reading = Reading(path, format_name)
    return sum(len(batch.rejects) for batch in reading.batches())


def split(path: Path) -> int:
    """Read and split the lines of a file, the least that a reader in Python could do."""
    words = 0
    with path.open() as lines:
        for line in lines:
            words += len(line.split())
    return words


def measure(folder: Path, rows: int, rounds: int) -> list[dict[str, float | str]]:
    """Time each format, with the plain loop in turns."""
    table: list[dict[str, float | str]] = []
    for name, (format_name, first, line) in LINES.items():
        regular, irregular = folder / "regular.txt", folder / "irregular.txt"
        write(regular, first, line, rows, None)
        write(irregular, first, line, rows, BAD_EVERY)
        contenders: dict[str, Callable[[], object]] = {
            "loop": partial(split, regular),
            "regular": partial(read, regular, format_name),
            "irregular": partial(read, irregular, format_name),
        }
        took = {kind: each / rows * 1e6 for kind, each in interleaved(contenders, rounds).items()}
        ratios = {f"ratio_{kind}": round(took[kind] / took["loop"], 2) for kind in ("regular", "irregular")}
        table.append(
            {"format": name, **{f"{kind}_us": round(each, 2) for kind, each in took.items()}, **ratios}
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        table = measure(Path(folder), options.rows, options.rounds)
    names = list(table[0])
    lines = [f"| {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(str(row[name]) for name in names)} |" for row in table]
    show(lines, {f"ratio_{row['format']}": row["ratio_regular"] for row in table}, options.json)


if __name__ == "__main__":
    main()
