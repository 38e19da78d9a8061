"""The processes of a log as small integers: one for each incarnation of a node in an independent order.

Nodes, groups and incarnations get their codes as batches are read. Until a log shows groups or incarnations,
the code of a process is the code of its node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from precede.core.natural_order import natural
from precede.witness.history import Gap, name_process
from precede.witness.reading.encode import Array, Names, Pairs


class ProcessTable:
    """Codes for the processes of a log, and their order once all rows are read.

    After `settle`: `node`, `group` and `incarnation` by process code; `order` has the codes of the processes
    that have rows, sorted by group, node and incarnation; `place` is the inverse of `order`, -1 for the others.
    """

    def __init__(self, by: tuple[str, ...]) -> None:
        self.by = by
        self.nodes = Names()
        self.group_names = [Names() for _ in by]
        self.groups = [Pairs() for _ in by[1:]]
        self._group_nodes, self._processes = Pairs(), Pairs()
        self._are_nodes = True

    @property
    def count(self) -> int:
        return len(self.nodes.names) if self._are_nodes else self._processes.count

    def codes(
        self,
        group: Array | None,
        node: Array,
        incarnation: Array | None,
        source: Array,
        source_incarnation: Array | None,
    ) -> tuple[Array, Array]:
        """Return the processes of some rows, and the processes that broadcast the rows' messages.

        None stands for a column of zeros.
        """
        if self._are_nodes and group is None and incarnation is None and source_incarnation is None:
            return node, source
        if self._are_nodes:
            self._are_nodes = False
            nodes = np.arange(len(self.nodes.names), dtype=np.int32)
            zeros = np.zeros(len(nodes), np.int32)
            self._processes.column(self._group_nodes.column(zeros, nodes), zeros)
        zeros = np.zeros(len(node), np.int32)
        groups = zeros if group is None else group
        of_rows = self._processes.column(
            self._group_nodes.column(groups, node), zeros if incarnation is None else incarnation
        )
        of_sources = self._processes.column(
            self._group_nodes.column(groups, source),
            zeros if source_incarnation is None else source_incarnation,
        )
        return of_rows, of_sources

    def settle(self, present: Array) -> None:
        """Fix the order of the processes; `present` says by code which of them have rows."""
        if self._are_nodes:
            self.node = np.arange(self.count, dtype=np.int32)
            self.group, self.incarnation = np.zeros(self.count, np.int32), np.zeros(self.count, np.int32)
        else:
            group_node = self._processes.first()
            self.group = self._group_nodes.first()[group_node]
            self.node = self._group_nodes.second()[group_node]
            self.incarnation = self._processes.second()
        keys = {code: self._sort_key(code) for code in np.flatnonzero(present).tolist()}
        self.order = np.array(sorted(keys, key=keys.__getitem__), np.int32)
        self.place = np.full(len(present), -1, np.int32)
        self.place[self.order] = np.arange(len(self.order), dtype=np.int32)

    def _sort_key(self, process: int) -> tuple[Any, ...]:
        group = tuple(natural(name) for name in self.group_values(int(self.group[process])))
        return group, natural(self.nodes.names[int(self.node[process])]), int(self.incarnation[process])

    def group_values(self, group: int) -> tuple[str, ...]:
        if not self.by:
            return ()
        values: list[str] = []
        for names, pairs in zip(self.group_names[:0:-1], self.groups[::-1], strict=True):
            values.append(names.names[int(pairs.second()[group])])
            group = int(pairs.first()[group])
        return (self.group_names[0].names[group], *reversed(values))

    def group_numbers(self) -> Array:
        """Return the group of every process in `order`, numbered from 0 in that order."""
        groups = self.group[self.order]
        if not len(groups):
            return groups
        return np.concatenate(([0], np.cumsum(groups[1:] != groups[:-1])))

    def name(self, process: int) -> str:
        """Return the name of a process for an error message; works before `settle`, too."""
        if self._are_nodes:
            return self.nodes.names[process]
        node = int(self._group_nodes.second()[self._processes.first()[process]])
        return name_process(self.nodes.names[node], int(self._processes.second()[process]))

    def gaps(self, named: Sequence[tuple[str, int, int | None, int]]) -> list[Gap]:
        """Return gaps that are given by node and incarnation, in the order of the processes."""
        by_name = {(node, incarnation): (last, after) for node, incarnation, last, after in named}
        gaps = []
        for place, code in enumerate(self.order.tolist()):
            key = (self.nodes.names[int(self.node[code])], int(self.incarnation[code]))
            if key in by_name:
                gaps.append(Gap(place, *by_name[key]))
        return gaps

    def same_node(self, place: int, other: int) -> bool:
        a, b = int(self.order[place]), int(self.order[other])
        return bool(self.node[a] == self.node[b] and self.group[a] == self.group[b])
