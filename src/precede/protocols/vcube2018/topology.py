"""The VCube: clusters, first children, the tree of each source (vcube2018, sections 2 and 4.2, Algorithm 1).

All functions are pure. A node number is a position in a hypercube, so it is small. The bit mask `live` has the
bit x for each working node x. The paper has 2^d nodes and none fails; we allow any set of nodes, because the
first fault-free node of a cluster represents it (section 2), and a position without a node counts as faulty.
Algorithm 1 prints `1 < s <= h`; we read `1 <= s <= h`, else the child of cluster 1 is never reached.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId

MOST_POSITIONS: Final = 1 << 16
"""The most positions of the hypercube. Masks have one bit for each."""


def cluster(i: NodeId, j: NodeId) -> int:
    """CLUSTER(i, j): return the number of the cluster of i that contains j, from 1; 0 for i itself.

    >>> cluster(0, 1), cluster(0, 2), cluster(0, 3), cluster(0, 7)
    (1, 2, 2, 3)
    """
    return (i ^ j).bit_length()


def members(i: NodeId, s: int) -> list[NodeId]:
    """Return c(i, s), cluster s of node i, in the paper's order, which is by ascending x xor i.

    >>> members(0, 3), members(5, 2)
    ([4, 5, 6, 7], [7, 6])
    """
    half = 1 << (s - 1)
    return [i ^ (half + offset) for offset in range(half)]


def live_mask(nodes: Iterable[NodeId]) -> int:
    """Return the bit mask of a set of nodes. Raises BadInput for a number that is no position."""
    return _mask_of_tuple(nodes) if isinstance(nodes, tuple) else _mask_of(nodes)


class _LastTuple:
    """The last tuple of nodes and its mask. All nodes of a world share their tuple of members.

    Without it, a world of 4,096 nodes takes three times as long for its first messages (`benchmarks.scaling`).
    """

    nodes: tuple[NodeId, ...] = ()
    mask = 0


def _mask_of_tuple(nodes: tuple[NodeId, ...]) -> int:
    if nodes is not _LastTuple.nodes:
        _LastTuple.mask = _mask_of(nodes)
        _LastTuple.nodes = nodes
    return _LastTuple.mask


def _mask_of(nodes: Iterable[NodeId]) -> int:
    mask = 0
    for node in nodes:
        if not 0 <= node < MOST_POSITIONS:
            raise BadInput(f"vcube: node {node} is no position of a hypercube (0 to {MOST_POSITIONS - 1})")
        mask |= 1 << node
    return mask


def first_child(i: NodeId, s: int, live: int) -> NodeId | None:
    """FIRSTCHILD(i, s): return the first working node of c(i, s), or None if there is none.

    >>> first_child(0, 3, 0b11111111), first_child(0, 3, 0b11001111), first_child(0, 3, 0b1111)
    (4, 6, None)
    """
    size = 1 << (s - 1)
    start = (i ^ size) & -size
    block = (live >> start) & ((1 << size) - 1)
    if not block:
        return None
    offset = 0
    while size > 1:
        size >>= 1
        low, high = block & ((1 << size) - 1), block >> size
        upper = bool(i & size) if low and high else bool(high)
        block = high if upper else low
        offset += size if upper else 0
    return start + offset


def height(i: NodeId, r: NodeId, live: int) -> int:
    """Return how many clusters i forwards to in the tree of r: d at the root, 0 at a leaf; i must work.

    >>> [height(i, 0, 0b11111111) for i in range(8)]
    [3, 0, 1, 0, 2, 0, 1, 0]
    """
    reached, below = r, dimension(live | 1 << r)
    while reached != i:
        below = cluster(reached, i) - 1
        step = first_child(reached, below + 1, live)
        assert step is not None, f"node {i} does not work"
        reached = step
    return below


def dimension(live: int) -> int:
    """Return d: how many clusters a node needs so that they contain all working nodes."""
    return (live.bit_length() - 1).bit_length() if live > 1 else 0


def responsibilities(i: NodeId, live: int) -> list[tuple[int, int]]:
    """Return, for each cluster s = 1 .. d, the sources whose messages i forwards into it.

    They are a mask and by how many bits it is to be shifted left. In a whole cube k = i xor 2^t is a child of i
    in the tree of l iff l and i agree modulo 2^(t+1), so all nodes share d masks and differ in the shifts.
    """
    d = dimension(live)
    if live + 1 == 1 << (1 << d):
        return [(multiples(1 << s, 1 << d), i % (1 << s)) for s in range(1, d + 1)]
    heights = _heights(i, live, 1 << d)
    return [
        (int("".join("1" if below >= s else "0" for below in reversed(heights)), 2), 0) for s in range(1, d + 1)
    ]


@lru_cache(maxsize=64)
def multiples(modulus: int, positions: int) -> int:
    """Return the mask of all positions that are multiples of a power of two."""
    return ((1 << positions) - 1) // ((1 << modulus) - 1)


def _heights(i: NodeId, live: int, positions: int) -> list[int]:
    """Return the height of i in the tree of every source.

    Sources are visited by distance: the path from a farther source joins one from a nearer source.
    """
    entries = _entries(live, positions)
    heights = [0] * positions
    heights[i] = dimension(live)
    for distance in range(1, positions):
        source = i ^ distance
        below = distance.bit_length() - 1
        entered = entries[below][source ^ (1 << below)]
        heights[source] = below if entered == i else heights[entered]
    return heights


@lru_cache(maxsize=64)
def _entries(live: int, positions: int) -> list[list[int]]:
    """Return entries[b][x]: of the 2^b positions around x, the working one nearest to x by xor, or -1."""
    entries = [[x if live >> x & 1 else -1 for x in range(positions)]]
    size = 1
    while size < positions:
        nearer = entries[-1]
        entries.append([nearer[x] if nearer[x] >= 0 else nearer[x ^ size] for x in range(positions)])
        size <<= 1
    return entries
