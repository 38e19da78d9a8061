"""Reads SocioPatterns contacts: `t i j` means that i and j were face to face in the window that ENDS at t.

Windows are 20 s long; consecutive windows of a pair are one contact, [t_first - 20, t_last]. The rows of a pair
are sorted by time. Other columns (roles) are ignored.
"""

from collections.abc import Iterable, Iterator

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration, Instant
from precede.files.lines import BadRow, data_lines, name_of
from precede.traces.formats.plain_columns import PlainBlock, PlainBlocks, blank_in, instants_of
from precede.traces.lines import instant
from precede.traces.records import MAX_PAIRS, ContactRow, Nodes, Row, Summary, in_order


def read_tij(
    lines: Iterable[tuple[int, str]], summary: Summary, window: Duration = 20 * SECOND
) -> Iterator[Row]:
    """Yields contacts as they end, and rejects; memory holds one open contact per pair."""
    contacts = _Contacts(summary, window)
    blocks = None
    for line, text in data_lines(lines):
        words = text.split()
        if blocks is None:
            blocks = PlainBlocks(lines, len(words), (1, 2), (0,), _rows, blank_in(text))
        try:
            if len(words) < 3:
                raise BadRow("too few fields")
            if words[1].upper() == "CONN":
                raise BadInput(f"{summary.file}:{line}: contacts of The ONE, not SocioPatterns: use --as one")
            row = line, instant(words[0]), name_of(words[1]), name_of(words[2])
        except BadRow as error:
            summary.rows_read += 1
            yield summary.reject(line, str(error))
            continue
        yield from contacts.add([row])
        for rows in blocks.after(line):
            yield from contacts.add(rows)
    yield from contacts.finish()


def _rows(block: PlainBlock) -> Iterator[tuple[int, Instant, str, str]] | None:
    """Return all rows of a block as line, instant and names; None if one of them cannot be parsed."""
    one, other = block.names
    at = instants_of(block.numbers[0])
    if at is None or "CONN" in (name.upper() for name in one.names):
        return None
    return zip(block.lines, at.tolist(), one.each(), other.each(), strict=True)


class _Contacts:
    """The open contact of every pair: the begin of its first window and the end of its last."""

    def __init__(self, summary: Summary, window: Duration) -> None:
        self._summary, self._window = summary, window
        self._nodes = Nodes(summary)
        self._open: dict[tuple[str, str], list[Instant]] = {}

    def add(self, rows: Iterable[tuple[int, Instant, str, str]]) -> Iterator[Row]:
        """Add windows: line, end, names. Yields the contacts that ended before, and rejects."""
        summary, window = self._summary, self._window
        for line, at, a, b in rows:
            summary.rows_read += 1
            if a == b:
                yield summary.reject(line, f"a node in contact with itself: {a}")
                continue
            pair = in_order(a, b)
            contact = self._open.get(pair)
            if contact is None:
                summary.rows_kept += 1
                self._begin(pair, at)
                continue
            start, end = contact
            if at <= end:
                yield summary.reject(
                    line, "same window as before" if at == end else "time before the pair's last"
                )
                continue
            summary.rows_kept += 1
            contact[1] = at
            if at - end > window:
                contact[0] = at - window
                yield ContactRow(*pair, start, end)

    def _begin(self, pair: tuple[str, str], at: Instant) -> None:
        for name in pair:
            self._nodes.add(name)
        if len(self._open) >= MAX_PAIRS:
            raise BadInput(f"{self._summary.file}: more than {MAX_PAIRS:,} pairs")
        self._open[pair] = [at - self._window, at]

    def finish(self) -> Iterator[Row]:
        for pair, (start, end) in self._open.items():
            yield ContactRow(*pair, start, end)
