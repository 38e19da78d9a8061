"""First copies: what the log of a deployment says about who had which message when, as columns.

A row is a message at a node that is not its source. The node had its first copy between `earliest` and
`latest`, by its own clock: one instant if the row of the first copy is in the log, an interval if it is missing
(the node sent the message on, or another node says that it sent or took it). `created` is an instant of the
clock of the source. No clock is ever compared with the clock of another node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from precede.core.natural_order import natural

Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

UNBOUNDED: Final = 1 << 60
"""An instant after all others; `-UNBOUNDED` is before all others. Sums with a margin stay within 64 bits."""


class Copies(Struct, frozen=True):
    """The first copies of one order as integers.

    Per copy: `node`, `message`, `earliest`, `latest`. Per message: `source` (a node), `rank` (its place among
    the messages of its source, from 0), `created`. `names` are the names of nodes, `labels` those of messages.
    """

    names: Sequence[str]
    labels: Sequence[str]
    node: Ints
    message: Ints
    earliest: Ints
    latest: Ints
    source: Ints
    rank: Ints
    created: Ints

    def keep(self, kept: Flags) -> Copies:
        """Return the copies for which `kept` is true; the messages stay."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        for name in ("node", "message", "earliest", "latest"):
            fields[name] = fields[name][kept]
        return Copies(**fields)


def encode(
    node: Sequence[str],
    message: Sequence[str],
    source: Sequence[str],
    created: Sequence[int],
    earliest: Sequence[int],
    latest: Sequence[int],
) -> Copies:
    """Return copies from columns of names and instants, one value for each copy.

    Messages of one source are in the order of their creation; of two with the same instant, the name decides.
    """
    return encode_table(
        pa.table(
            {
                "node": pa.array(node, pa.string()),
                "message": pa.array(message, pa.string()),
                "source": pa.array(source, pa.string()),
                "created_us": pa.array(created, pa.int64()),
                "earliest_us": pa.array(earliest, pa.int64()),
                "latest_us": pa.array(latest, pa.int64()),
            }
        )
    )


def encode_table(table: pa.Table) -> Copies:
    """Return copies from an Arrow table: node, message, source, created_us, earliest_us, latest_us.

    Messages of one source are in the order of their creation; of two with the same instant, the name decides.
    """
    index, labels = _dictionary(table["message"])
    source_at, sources = _dictionary(table["source"])
    node_at, nodes = _dictionary(table["node"])
    place = {name: number for number, name in enumerate(sources)}  # sources first: pasts have a number for each
    for name in nodes:
        place.setdefault(name, len(place))
    first = np.zeros(len(labels), np.int64)
    first[index[::-1]] = np.arange(len(index))[::-1]
    source_of, created_of = source_at[first], _numbers(table["created_us"])[first]
    return Copies(
        names=list(place),
        labels=labels,
        node=np.array([place[name] for name in nodes], np.int64)[node_at],
        message=index,
        earliest=_numbers(table["earliest_us"]),
        latest=_numbers(table["latest_us"]),
        source=source_of,
        rank=rank_messages(source_of, created_of, labels),
        created=created_of,
    )


def rank_messages(source: Ints, created: Ints, labels: Sequence[str]) -> Ints:
    """Return the place of each message among the messages of its source, by creation, then by name."""
    by_name = np.empty(len(labels), np.int64)
    by_name[sorted(range(len(labels)), key=lambda m: natural(labels[m]))] = np.arange(len(labels))
    order = np.lexsort((by_name, created, source))
    rank = np.empty(len(labels), np.int64)
    of_sorted = source[order]
    begins = (
        np.flatnonzero(np.r_[True, of_sorted[1:] != of_sorted[:-1]]) if len(order) else np.empty(0, np.int64)
    )
    lengths = np.diff(np.r_[begins, len(order)])
    rank[order] = np.arange(len(order)) - np.repeat(begins, lengths)
    return rank


def _dictionary(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return the place of each value in the list of distinct values, and that list."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return _numbers(encoded.indices), encoded.dictionary.to_pylist()


def _numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(column.cast(pa.int64()), np.int64)
