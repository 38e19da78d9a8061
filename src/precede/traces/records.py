"""The values that a trace reader yields: rows for the lake, rejects, and a summary that adds up.

A *row* is one line of data in a file: not blank, not a comment, not a header. Every row is counted once, as
kept or as rejected; a reject has the file, the line and the reason. Repairs and merges that lose no row are
counted in `notes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.core.natural_order import natural

MAX_NODES: Final = 1_000_000
MAX_PAIRS: Final = 4_000_000
MAX_REJECTS: Final = 1_000_000
BATCH_ROWS: Final = 20_000


class SegmentRow(NamedTuple):
    """The straight motion of a node between two instants, in metres."""

    node: str
    t0_us: Instant
    x0: float
    y0: float
    t1_us: Instant
    x1: float
    y1: float


class ContactRow(NamedTuple):
    """An interval in which two nodes are in range of each other."""

    a: str
    b: str
    start_us: Instant
    end_us: Instant


class MessageRow(NamedTuple):
    """A message of a workload; an empty `destination` means all nodes."""

    id: str
    source: str
    destination: str
    at_us: Instant
    size_bytes: int


class Reject(NamedTuple):
    """A row that could not be used, and the reason."""

    file: str
    line: int
    reason: str


Row: TypeAlias = SegmentRow | ContactRow | MessageRow | Reject


class Summary(Struct):
    """Counts for one file; `rows_read` is `rows_kept` plus `rows_rejected`.

    `reasons` counts rejects by reason, `notes` counts repairs, `facts` are properties such as the service day.
    """

    file: str
    format: str
    rows_read: int = 0
    rows_kept: int = 0
    rows_rejected: int = 0
    nodes: int = 0
    segments: int = 0
    contacts: int = 0
    messages: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def note(self, cause: str, times: int = 1) -> None:
        """Count a repair, a merge or a skipped line."""
        self.notes[cause] = self.notes.get(cause, 0) + times

    def reject(self, line: int, reason: str, table: str | None = None) -> Reject:
        """Count and return a rejected row; `table` is the table inside an archive.

        The variable part of a reason comes after a colon; rejects are counted by the part before it.
        """
        self.rows_rejected += 1
        kind = reason.split(":", 1)[0]
        self.reasons[kind] = self.reasons.get(kind, 0) + 1
        return Reject(self.file if table is None else f"{self.file}/{table}", line, reason)

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        made = [f"{n:,} {noun}" for n, noun in self._made() if n]
        rows = f"{self.rows_read:,} rows read = {self.rows_kept:,} kept + {self.rows_rejected:,} rejected"
        text = [f"{self.file}: {rows}", f"  {self.nodes:,} nodes, {', '.join(made) or 'nothing'}"]
        text += [f"  {noun}: {value}" for noun, value in self.facts.items()]
        text += [f"  rejected, {reason}: {count:,}" for reason, count in self.reasons.items()]
        text += [f"  {noun}: {count:,}" for noun, count in self.notes.items()]
        return text

    def _made(self) -> Iterable[tuple[int, str]]:
        return (self.segments, "segments"), (self.contacts, "contacts"), (self.messages, "messages")


class Batch(Struct):
    """Rows of each kind; all together at most the batch size."""

    segments: list[SegmentRow] = field(default_factory=list)
    contacts: list[ContactRow] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


def batches(rows: Iterator[Row], summary: Summary, size: int = BATCH_ROWS) -> Iterator[Batch]:
    """Yield rows in bounded batches and count them by kind. At the end the summary is checked."""
    batch, held = Batch(), 0
    for row in rows:
        if type(row) is SegmentRow:
            batch.segments.append(row)
            summary.segments += 1
        elif type(row) is ContactRow:
            batch.contacts.append(row)
            summary.contacts += 1
        elif type(row) is MessageRow:
            batch.messages.append(row)
            summary.messages += 1
        elif type(row) is Reject:
            batch.rejects.append(row)
        held += 1
        if held >= size:
            _check_rejects(summary)
            yield batch
            batch, held = Batch(), 0
    if held:
        yield batch
    check(summary)


def _check_rejects(summary: Summary) -> None:
    """Raise BadInput if over a million rows were rejected so far, and they are over nine tenths of all rows."""
    if summary.rows_rejected > MAX_REJECTS and summary.rows_rejected > 0.9 * summary.rows_read:
        raise BadInput(
            f"{summary.file}: {summary.rows_rejected:,} of the first {summary.rows_read:,} rows are rejected"
            f" (the first: {next(iter(summary.reasons))}); is `--as {summary.format}` right?"
        )


def check(summary: Summary) -> None:
    """Raise BadInput if a file has no usable row, and AssertionError if its summary does not add up."""
    if summary.rows_read != summary.rows_kept + summary.rows_rejected:
        raise AssertionError(f"the rows of {summary.file} do not add up: {summary}")
    if summary.rows_read == 0:
        raise BadInput(f"{summary.file}: no rows of {summary.format}")
    if summary.rows_kept == 0:
        reason = next(iter(summary.reasons), "")
        raise BadInput(
            f"{summary.file}: none of {summary.rows_read:,} rows is {summary.format} "
            f"(the first was rejected: {reason}); is `--as {summary.format}` right?"
        )


def in_order(a: str, b: str) -> tuple[str, str]:
    """Return a pair of names in natural order."""
    return (a, b) if natural(a) <= natural(b) else (b, a)


class Nodes:
    """Counts distinct nodes. Raises BadInput for too many: the id column is then probably wrong."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._names: set[str] = set()

    def add(self, name: str) -> None:
        """Count a node, unless it was counted before."""
        if name not in self._names:
            self._names.add(name)
            self._summary.nodes += 1
            if self._summary.nodes > MAX_NODES:
                raise BadInput(f"{self._summary.file}: more than {MAX_NODES:,} nodes; is the id column right?")
