"""Nodes that relay floods for all others (drift2006, section 8): a dominating set, or a tree's inner nodes.

Both are connected, and every other node is a neighbour of one of them, so a flood that they alone relay reaches
everybody. They are computed from the places of all nodes, as Bharghavan and Das do ([7] of the paper).
"""

from collections import deque
from collections.abc import Sequence
from math import dist
from typing import Literal, TypeAlias

from precede.sim.networks.motion import Point

Backbone: TypeAlias = Literal["all", "dominating", "tree"]


def backbone_of(kind: Backbone, places: Sequence[Point], reach: float) -> str:
    """Return the ids of the relaying nodes as the option `backbone` has them."""
    if kind == "all":
        return "all"
    neighbours = [
        [other for other, there in enumerate(places) if other != node and dist(here, there) <= reach]
        for node, here in enumerate(places)
    ]
    chosen = dominating_set(neighbours) if kind == "dominating" else inner_nodes(neighbours)
    return " ".join(map(str, chosen))


def dominating_set(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """Return a connected dominating set, grown from the node with the most neighbours.

    The next member is the covered node that covers most others; of equals, the one with the lowest id.

    >>> dominating_set([[1], [0, 2], [1, 3], [2]])
    [1, 2]
    """
    first = max(range(len(neighbours)), key=lambda node: (len(neighbours[node]), -node))
    members, covered = [first], {first, *neighbours[first]}
    while len(covered) < len(neighbours):
        gains = {node: len(set(neighbours[node]) - covered) for node in sorted(covered) if node not in members}
        best = max(gains, key=lambda node: (gains[node], -node), default=None)
        if best is None or not gains[best]:
            raise ValueError("the network is not connected")
        members.append(best)
        covered.update(neighbours[best])
    return sorted(members)


def inner_nodes(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes with children in a breadth-first tree from node 0.

    >>> inner_nodes([[1, 2], [0, 3], [0], [1]])
    [0, 1]
    """
    seen, parents, edge = {0}, [], deque([0])
    while edge:
        node = edge.popleft()
        children = [other for other in neighbours[node] if other not in seen]
        if children:
            parents.append(node)
        seen.update(children)
        edge.extend(children)
    return sorted(parents)
