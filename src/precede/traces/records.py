"""The values that a trace reader yields: rows for the lake, rejects, and a summary that adds up.

A *row* is one line of data in a file: not blank, not a comment, not a header. Every row is counted once, as
kept or as rejected; a reject has the file, the line and the reason. `notes` counts repairs and merges.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.core.natural_order import natural
from precede.files.rejects import Reject, RowCounts

MAX_NODES: Final = 1_000_000
MAX_PAIRS: Final = 4_000_000
BATCH_ROWS: Final = 20_000


_key_of: Final = lru_cache(1 << 16)(natural)  # the same names come again in every row


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


Row: TypeAlias = SegmentRow | ContactRow | MessageRow | Reject


class Summary(RowCounts):
    """Counts for one trace file. `notes` counts repairs, `facts` are properties such as the service day."""

    nodes: int = 0
    segments: int = 0
    contacts: int = 0
    messages: int = 0
    notes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def note(self, cause: str, times: int = 1) -> None:
        self.notes[cause] = self.notes.get(cause, 0) + times

    def lines(self) -> list[str]:
        made = [f"{n:,} {noun}" for n, noun in self._made() if n]
        text = [f"{self.file}: {self.rows()}", f"  {self.nodes:,} nodes, {', '.join(made) or 'nothing'}"]
        text += [f"  {noun}: {value}" for noun, value in self.facts.items()]
        text += [f"  {line}" for line in self.rejected()]
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
            summary.check_rejects()
            yield batch
            batch, held = Batch(), 0
    if held:
        yield batch
    summary.check()


@lru_cache(1 << 16)
def in_order(a: str, b: str) -> tuple[str, str]:
    return (a, b) if _key_of(a) <= _key_of(b) else (b, a)


class Nodes:
    """Counts distinct nodes. Raises BadInput for too many: the id column is then probably wrong."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._names: set[str] = set()

    def add(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            self._summary.nodes += 1
            if self._summary.nodes > MAX_NODES:
                raise BadInput(f"{self._summary.file}: more than {MAX_NODES:,} nodes; is the id column right?")
