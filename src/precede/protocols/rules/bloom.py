"""A Bloom filter of message ids, as a whole number whose bits are set.

Its size and number of hashes are the optimal ones for one false positive in a hundred at full capacity.
"""

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from math import ceil, log
from typing import Final

from precede.core.identity import MessageId

HASHES: Final = 7
_BITS_PER_ID: Final = -log(0.01) / log(2) ** 2


class BloomFilter:
    """The filter of the newest ids. When it is full, it is computed again from the newer half of them."""

    def __init__(self, capacity: int) -> None:
        self.size_bytes = ceil(capacity * _BITS_PER_ID / 8)
        self._newest: deque[MessageId] = deque(maxlen=capacity)
        self._capacity = capacity
        self._bits = 0

    def add(self, id: MessageId) -> None:
        if len(self._newest) == self._capacity:
            self._newest = deque(islice(self._newest, self._capacity // 2, None), self._capacity)
            self._bits = 0
            for kept in self._newest:
                self._bits |= mask_of(kept, self.size_bytes)
        self._newest.append(id)
        self._bits |= mask_of(id, self.size_bytes)

    def may_hold(self, written: bytes, ids: Sequence[MessageId]) -> list[MessageId]:
        """Return the ids that another node's filter may hold; the others it certainly does not.

        A filter of another size than this one is ignored: all nodes of a group have the same options.
        """
        if len(written) != self.size_bytes:
            return []
        bits = int.from_bytes(written, "little")
        masks = [(id, mask_of(id, self.size_bytes)) for id in ids]
        return [id for id, mask in masks if bits & mask == mask]

    def written(self) -> bytes:
        """Return the filter as it travels."""
        return self._bits.to_bytes(self.size_bytes, "little")


@lru_cache(maxsize=1 << 12)
def mask_of(id: MessageId, size_bytes: int) -> int:
    """Return the bits of an id in a filter of this size. All nodes of a simulation share the results."""
    digest = blake2b(repr((id.source, id.incarnation, id.number)).encode(), digest_size=16).digest()
    first, step = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    mask = 0
    for turn in range(HASHES):
        mask |= 1 << (first + turn * step) % (size_bytes * 8)
    return mask
