"""Follows a folder into which members write segments of their event logs, in this process and without Spark.

Every group (`run_id`) in the folder has a live verifier of its own. A segment is read once, when it appears; a
longer one that replaces it is read too, and its known rows change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput
from precede.witness.live.intake import LEFT, STARTED
from precede.witness.live.live import LiveRun
from precede.witness.live.state import LiveRow
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER
from precede.witness.verdict import Order, Violation

_KINDS: Final = {"broadcast": BROADCAST, "delivered": DELIVERED, "started": STARTED, "left": LEFT}
_COLUMNS: Final = (
    *(
        "run_id",
        "node",
        "incarnation",
        "step",
        "kind",
        "message_source",
        "message_incarnation",
        "message_number",
    ),
    *("destinations", "deadline_us", "clock_us"),
)
FILES_AT_ONCE: Final = 200
MOST_STORIES: Final = 20
"""How many violations are kept as stories; all are counted."""


class FolderFollower:
    """Verifies the logs in a folder as they grow. `poll` reads what is new."""

    def __init__(self, folder: Path, order: Order = "causal", retain_us: int | None = None) -> None:
        if not folder.is_dir():
            raise BadInput(f"{folder}: not a folder with event logs")
        self.order = order
        self.counts: dict[str, int] = {}
        self.stories: list[Violation] = []
        self.unread = 0
        self._folder = folder
        self._retain_us = retain_us
        self._runs: dict[str, LiveRun] = {}
        self._read: dict[str, None] = {}

    def poll(self, most: int = FILES_AT_ONCE) -> list[Violation]:
        """Read at most so many of the segments that appeared, and return the violations that they prove."""
        violations: list[Violation] = []
        paths = {
            str(path.relative_to(self._folder)): path for path in sorted(self._folder.rglob("[!.]*.parquet"))
        }
        new = [name for name in paths if name not in self._read]
        self.unread = len(new[most:])
        for name in new[:most]:
            groups = _rows(paths[name])
            self._read[name] = None
            for group, rows in groups.items():
                run = self._runs.get(group)
                if run is None:
                    run = self._runs[group] = LiveRun(self.order, retain_us=self._retain_us)
                violations += run.add(rows)
        for violation in violations:
            self.counts[violation.kind] = self.counts.get(violation.kind, 0) + 1
        self.stories = (self.stories + violations)[-MOST_STORIES:]
        return violations

    @property
    def rows(self) -> int:
        return sum(run.state.facts.rows for run in self._runs.values())

    @property
    def deliveries(self) -> int:
        return sum(run.state.facts.deliveries for run in self._runs.values())

    @property
    def waiting(self) -> int:
        """How many rows wait for others that are not written yet."""
        return sum(run.state.held + run.state.parked for run in self._runs.values())

    @property
    def waits_for(self) -> list[str]:
        """Return what these rows wait for, in a few sentences."""
        return [line for run in self._runs.values() for line in run.state.waits_for()]

    @property
    def groups(self) -> list[str]:
        return list(self._runs)


def _rows(path: Path) -> dict[str, list[tuple[str, int, LiveRow]]]:
    """Return the rows of a segment by group. A file that a longer one has just replaced has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read(columns=list(_COLUMNS))
    except FileNotFoundError:
        return {}
    except (pa.ArrowInvalid, KeyError) as error:
        raise BadInput(f"{path}: not a segment of an event log: {str(error).splitlines()[0]}") from None
    if any(name not in table.column_names for name in _COLUMNS):
        raise BadInput(f"{path}: not a segment of an event log: a column is missing")
    groups: dict[str, list[tuple[str, int, LiveRow]]] = {}
    for group, node, incarnation, row in _live(table):
        groups.setdefault(group, []).append((node, incarnation, row))
    return groups


def _live(table: Any) -> Iterator[tuple[str, str, int, LiveRow]]:
    columns = [table[name].to_pylist() for name in _COLUMNS]
    for run, node, incarnation, step, word, source, source_incarnation, number, to, deadline, clock in zip(
        *columns, strict=True
    ):
        kind = _KINDS.get(word, OTHER)
        if kind in (BROADCAST, DELIVERED):
            stream = (source, source_incarnation or 0, number)
            addressed = None if to is None else sorted(to)
            yield run, node, incarnation, LiveRow(step, kind, *stream, addressed, deadline, clock)
        else:
            yield run, node, incarnation, LiveRow(step, kind, clock=clock)
