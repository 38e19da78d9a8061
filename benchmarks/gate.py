"""Machine instructions per row of the event log, compared with those in benchmarks/instructions.json.

    python -m benchmarks.gate            exit code 1 if a kind of world takes 3 % more than the file says
    python -m benchmarks.gate --write    measure and write the file

Instructions are counted by valgrind, so a busy machine gives the same numbers. A world is simulated for a short
and a long time, with the log in memory; the figure is the difference of the instructions divided by the
difference of the rows. Start-up is not in it. Figures of another interpreter or library do not compare.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

from benchmarks.measuring import built
from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.scenario import read_scenario

FIGURES: Final = Path(__file__).with_name("instructions.json")
TOLERANCE: Final = 0.03
ROUNDS: Final = 2

WORLDS: Final[dict[str, tuple[str, str, str, str]]] = {
    "contacts": (
        """
        world = { kind = "contacts", contacts = "contacts.csv" }
        workload = { every = "20s", first = "1s", size = 100 }
        run = { protocol = "delta_causal", options = { lifetime = "2min" } }""",
        "until",
        "2min",
        "4min",
    ),
    "point_to_point": (
        """
        world = { kind = "point_to_point", nodes = 16, delay = "exponential(0.05)" }
        workload = { poisson = "1s" }
        run = { protocol = "causal_barrier", options = { dissemination = "direct" } }""",
        "until",
        "1s",
        "3s",
    ),
    "switched": (
        """
        world = { kind = "switched", nodes = 16 }
        workload = { poisson = "1s" }
        run = { protocol = "vcube" }""",
        "until",
        "1s",
        "4s",
    ),
    "flood": (
        """
        world = { kind = "flood", nodes = 8 }
        workload = { poisson = "2s" }
        run = { protocol = "drift" }""",
        "until",
        "2s",
        "6s",
    ),
    "cellular": (
        """
        world = { kind = "cellular", stations = 4, hosts = 12, duration = "10s" }
        workload = { poisson = "1s" }
        run = { protocol = "was" }""",
        "until",
        "2s",
        "6s",
    ),
}
"""Scenario, the key that makes it longer, and that key's two values."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the figures as those to compare with")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--counted", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.counted:
        run_all(Path(options.counted))
        return
    figures = count_all()
    if options.write:
        FIGURES.write_text(
            json.dumps({"made_with": made_with(), "per_row": figures}, indent=2) + "\n", encoding="utf-8"
        )
    if options.json:
        print(json.dumps(figures))
        return
    sys.exit(compare(figures, json.loads(FIGURES.read_text(encoding="utf-8"))))


def compare(figures: dict[str, int], kept: dict[str, Any]) -> int:
    """Print the figures beside the kept ones; return 1 if one of them is too large."""
    if kept["made_with"] != made_with():
        print(f"not compared: the figures were counted with {kept['made_with']}, here is {made_with()}")
        return 0
    too_many = 0
    for name, count in figures.items():
        growth = count / kept["per_row"][name] - 1
        too_many += growth > TOLERANCE
        print(
            f"{name:16}{count:9,} instructions a row, {growth:+.1%}{' too many' if growth > TOLERANCE else ''}"
        )
    return min(too_many, 1)


def made_with() -> str:
    """Return what the figures depend on besides the project's source."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("msgspec", "numpy", "pyarrow"))
    return f"{built()} CPython {platform.python_version()}, {platform.python_compiler()}, {libraries}"


def count_all() -> dict[str, int]:
    """Return the instructions per row of each world, counted in one process under valgrind."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/dump"]
        command += [sys.executable, "-m", "benchmarks.gate", "--counted", folder]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        rows = json.loads((Path(folder) / "rows.json").read_text())
        counts = _counts(Path(folder))
    figures = {}
    for name in WORLDS:
        short, long = (min(counts[f"{name} {end}"]) for end in ("short", "long"))
        figures[name] = round((long - short) / (rows[f"{name} long"] - rows[f"{name} short"]))
    return figures


def _counts(folder: Path) -> dict[str, list[int]]:
    """Return the instructions of every dump, by its name."""
    counts: dict[str, list[int]] = {}
    for file in sorted(folder.glob("dump*")):
        text = file.read_text(encoding="utf-8")
        named = re.search(r"^desc: Trigger: dump (.*)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if named and total:
            counts.setdefault(named[1].replace("_long", " long").replace("_short", " short"), []).append(
                int(total[1])
            )
    return counts


def run_all(folder: Path) -> None:
    """Simulate every world several times, each between two commands to valgrind; the process under valgrind."""
    rows = {}
    starts = {(a, b): (a * 7 + b * 13) % 40 for b in range(20) for a in range(b % 4, b, 4)}
    meetings = [
        f"n{a},n{b},{at + 40 * k},{at + 40 * k + 15}" for k in range(6) for (a, b), at in starts.items()
    ]
    (folder / "contacts.csv").write_text("\n".join(["a,b,start,end", *meetings]) + "\n", encoding="utf-8")
    for name, (text, key, *ends) in WORLDS.items():
        file = folder / f"{name}.toml"
        file.write_text(dedent(text), encoding="utf-8")
        for _ in range(ROUNDS):
            for length, end in zip(("short", "long"), ends, strict=True):
                ready = prepare(read_scenario(str(file), settings={key: end, "gauges": "none"}), TableSink())
                gc.collect()
                _control("--instr=on")
                _control("--zero")
                ready.world.run(ready.end)
                ready.recorder.flush()
                _control(f"--dump={name}_{length}")
                _control("--instr=off")
                rows[f"{name} {length}"] = ready.recorder.rows
    (folder / "rows.json").write_text(json.dumps(rows))


def _control(command: str) -> None:
    subprocess.run(["callgrind_control", command, str(os.getpid())], check=True, capture_output=True)


if __name__ == "__main__":
    main()
