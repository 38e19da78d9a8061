"""Reads SocioPatterns contacts: `t i j` means that i and j were face to face in the window that ENDS at t.

Windows are 20 s long; consecutive windows of a pair are one contact, [t_first - 20, t_last]. The rows of a pair
are sorted by time. Other columns (roles) are ignored.
"""

from collections.abc import Iterable, Iterator

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration
from precede.files.lines import BadRow, data_lines, name_of
from precede.traces.lines import instant
from precede.traces.records import MAX_PAIRS, ContactRow, Nodes, Row, Summary, in_order


def read_tij(
    lines: Iterable[tuple[int, str]], summary: Summary, window: Duration = 20 * SECOND
) -> Iterator[Row]:
    """Yields contacts as they end, and rejects; memory holds one open contact per pair."""
    nodes = Nodes(summary)
    open_since: dict[tuple[str, str], list[int]] = {}
    for line, text in data_lines(lines):
        words = text.split()
        summary.rows_read += 1
        try:
            if len(words) < 3:
                raise BadRow("too few fields")
            if words[1].upper() == "CONN":
                raise BadInput(f"{summary.file}:{line}: contacts of The ONE, not SocioPatterns: use --as one")
            at, a, b = instant(words[0]), name_of(words[1]), name_of(words[2])
            if a == b:
                raise BadRow(f"a node in contact with itself: {a}")
            pair = in_order(a, b)
            contact = open_since.get(pair)
            if contact is not None and at <= contact[1]:
                raise BadRow("same window as before" if at == contact[1] else "time before the pair's last")
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        summary.rows_kept += 1
        nodes.add(a)
        nodes.add(b)
        if contact is not None and at - contact[1] <= window:
            contact[1] = at
            continue
        if contact is not None:
            yield ContactRow(*pair, contact[0], contact[1])
        elif len(open_since) >= MAX_PAIRS:
            raise BadInput(f"{summary.file}: more than {MAX_PAIRS:,} pairs")
        open_since[pair] = [at - window, at]
    for pair, (start, end) in open_since.items():
        yield ContactRow(*pair, start, end)
