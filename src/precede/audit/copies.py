"""First copies: what the log of a deployment says about who had which message when, as columns.

A row is a message at a node that is not its source. The node had its first copy between `earliest` and
`latest`, by its own clock: one instant if the row of the first copy is in the log, an interval if it is missing
(the node sent the message on, or another node says that it sent or took it). `created` is an instant of the
clock of the source. No clock is ever compared with the clock of another node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
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
    labels, first, index = np.unique(_objects(message), return_index=True, return_inverse=True)
    sources, source_at = np.unique(_objects(source), return_inverse=True)
    nodes, node_at = np.unique(_objects(node), return_inverse=True)
    others = nodes[~np.isin(nodes, sources)]
    names = np.concatenate([sources, others])  # sources first: a past has a number for each of them
    place = {name: index for index, name in enumerate(names.tolist())}
    at = np.array([place[name] for name in nodes.tolist()], np.int64)[node_at] if len(nodes) else node_at
    source_of = source_at[first].astype(np.int64)
    created_of = np.asarray(created, np.int64)[first]
    return Copies(
        names=names.tolist(),
        labels=labels.tolist(),
        node=at.astype(np.int64),
        message=index.astype(np.int64),
        earliest=np.asarray(earliest, np.int64),
        latest=np.asarray(latest, np.int64),
        source=source_of,
        rank=rank_messages(source_of, created_of, labels.tolist()),
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


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    return np.asarray(values, object)
