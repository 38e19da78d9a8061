"""Large CSV logs: the block reader and the row reader give the same verdicts, and the same errors."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from precede.core.errors import BadInput
from precede.witness.reading import csv_blocks, logs
from precede.witness.verify import verify

HEADER = "node,step,kind,message_source,message_number,note"


def rows_of(random: Random, nodes: int = 4, broadcasts: int = 60) -> list[str]:
    """A log in which some deliveries are late."""
    steps, rows, numbers = [0] * nodes, [], [0] * nodes
    for _ in range(broadcasts):
        source = random.randrange(nodes)
        numbers[source] += 1
        steps[source] += 1
        rows.append(f"n{source},{steps[source]},broadcast,n{source},{numbers[source]},x")
        for node in range(nodes):
            if random.random() < 0.9 and node != source:
                steps[node] += 1
                late = max(1, numbers[source] - random.choice((0, 0, 0, 1)))
                rows.append(f"n{node},{steps[node]},delivered,n{source},{late},")
    return rows


def outcome(path: Path) -> object:
    try:
        verdict = verify(path, "causal", engine="numba")
    except BadInput as error:
        return str(error)
    return verdict.plain()


CHANGES = {
    "nothing": lambda row: row,
    "quotes": lambda row: f'"{row.split(",")[0]}",' + row.partition(",")[2],
    "a carriage return": lambda row: row + "\r",
    "an accent": lambda row: row + "é",
    "a cell too many": lambda row: row + ",",
    "a cell too few": lambda row: row.rpartition(",")[0],
    "a blank line": lambda row: row + "\n",
    "a word for a number": lambda row: row.replace(",delivered", "x,delivered").replace(
        ",broadcast", "x,broadcast"
    ),
    "leading zeros": lambda row: row.replace(",delivered,", ",delivered,", 1),
    "a cut last row": lambda row: row,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(3))
def test_both_readers_agree(change: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    rows = rows_of(random)
    at = random.randrange(len(rows))
    rows[at] = CHANGES[change](rows[at])
    text = "\n".join([HEADER, *rows]) + "\n"
    if change == "a cut last row":
        text = text[: random.randint(len(text) - 12, len(text) - 1)]
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode())
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 700)
    monkeypatch.setattr(logs, "LARGE_TEXT_BYTES", 10)
    by_blocks = outcome(path)
    monkeypatch.setattr(logs, "LARGE_TEXT_BYTES", 1 << 40)
    assert outcome(path) == by_blocks


def test_regular_blocks_are_read_by_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the row reader: a regular file must not need it."""
    rows = rows_of(Random(1))
    path = tmp_path / "log.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    monkeypatch.setattr(logs, "LARGE_TEXT_BYTES", 10)
    monkeypatch.setattr(logs.CsvLog, "_rows", lambda self: iter(()))
    assert verify(path, "causal", engine="numba").rows == len(rows)
