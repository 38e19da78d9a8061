"""Sets of sources as bit masks: one operation compares the vector entries of many sources (decision 0012).

A mask has one bit for each source. With 1,024 sources it does not fit a machine word, so its type is `Any`:
mypyc then uses Python's integers. Where the package is compiled, `machine_sources` keeps the sets that every
message reads and changes in machine words instead (`prepared.new_set`, `new_row`, `new_share`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

from precede.core.identity import NodeId

Mask: TypeAlias = Any
"""An integer with one bit for each source."""


class Row:
    """All vector entries with the same number: the mask of their sources."""

    __slots__ = ("mask", "number")

    def __init__(self, number: int, mask: Mask) -> None:
        self.number = number
        self.mask: Any = mask


class Share:
    """The sources whose messages a node forwards to one child: those of `mask`, shifted left by `shift` bits.

    If `period` is not 0, they are all positions that leave the rest `shift` when divided by it. The nodes of a
    whole hypercube share their masks. With a shifted mask for each child of each node, 16,384 nodes took 500 MB
    for them.
    """

    __slots__ = ("mask", "period", "shift")

    def __init__(self, mask: Mask, shift: int, period: int = 0) -> None:
        self.mask: Any = mask
        self.shift = shift
        self.period = period


class SourceSet:
    """A set of sources; `size` is their number."""

    __slots__ = ("_mask", "size")

    def __init__(self, mask: Mask) -> None:
        self.size: int = mask.bit_count()
        self._mask: Any = mask

    def mask(self) -> Mask:
        return self._mask

    def has(self, source: NodeId) -> bool:
        return bool(self._mask >> source & 1)

    def add(self, source: NodeId) -> None:
        """Add a source that is not in the set."""
        self._mask |= 1 << source
        self.size += 1

    def remove(self, source: NodeId) -> None:
        """Remove a source that is in the set."""
        self._mask ^= 1 << source
        self.size -= 1

    def take(self, source: NodeId, row: Row) -> bool:
        """Remove a source if the set has it, and has nothing else of the row. True if it was removed."""
        if self._mask & row.mask != 1 << source:
            return False
        self.remove(source)
        return True

    def highest(self, row: Row) -> NodeId:
        """Return the highest source that is both in the set and in the row; -1 if there is none."""
        common: Any = self._mask & row.mask
        return int(common.bit_length()) - 1

    def highest_beside(self, row: Row, other: SourceSet | None, share: Share) -> NodeId:
        """Return the highest source that is in the set, the row and the share, but not in `other`; or -1."""
        common: Any = self._mask & row.mask
        if common and other is not None:
            common ^= common & other.mask()
        return highest_of(common, share)


def highest_of(mask: Mask, share: Share) -> NodeId:
    """Return the highest source of a mask that is in the share; -1 if there is none."""
    common: Any = mask >> share.shift & share.mask if mask else 0
    return int(common.bit_length()) - 1 + share.shift if common else -1


def sources_of(mask: Mask) -> list[NodeId]:
    digits: str = f"{mask:b}"[::-1]
    return [source for source, digit in enumerate(digits) if digit == "1"]


@lru_cache(maxsize=8)
def everybody_of(positions: int) -> Mask:
    """Return the mask of all sources. The nodes of a world share it: 16,384 of them would need 36 MB."""
    return (1 << positions) - 1
