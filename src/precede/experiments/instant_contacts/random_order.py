"""Random order of transfer: all ranks of a packet are drawn at once, and sorted in machine words.

`Random.random` takes 64 bits of a generator, and `getrandbits` gives the same bits: the generator goes on as
after so many calls of `random`. The ranks are looked at only if the packet has to be put in order.
"""

from __future__ import annotations

from random import Random
from typing import Final

from librt.strings import read_i64_le
from librt.vecs import vec
from mypy_extensions import i64

_RANK_BITS: Final = 53
_HALF: Final = 0xFFFFFFFF


def drawn(generator: Random, count: int) -> int:
    """Draw so many random ranks, as one number."""
    return generator.getrandbits(64 * count)


def by_rank(ranks: int, count: int) -> list[int]:
    """Return the places of the ranks in the order of the fractions that `Random.random` makes of these bits.

    The highest bits of its rank put each place into one of about `count` buckets. Then a place moves before
    those with higher ranks, of which its bucket has few.
    """
    bits: i64 = (count - 1).bit_length()
    shift: i64 = _RANK_BITS - bits
    length: i64 = count
    data = ranks.to_bytes(8 * count, "little")
    unsorted = vec[i64]([0] * length)
    ends = vec[i64]([0] * (2 * length))
    place: i64 = 0
    while place < length:
        word = read_i64_le(data, 8 * place)
        rank = (word & _HALF) >> 5 << 26 | (word >> 32 & _HALF) >> 6
        unsorted[place] = rank
        ends[rank >> shift] += 1
        place += 1
    bucket: i64 = 1
    while bucket < len(ends):
        ends[bucket] += ends[bucket - 1]
        bucket += 1
    sorted_ranks = vec[i64]([0] * length)
    places = vec[i64]([0] * length)
    while place > 0:
        place -= 1
        rank = unsorted[place]
        bucket = rank >> shift
        ends[bucket] -= 1
        sorted_ranks[ends[bucket]] = rank
        places[ends[bucket]] = place
    _insert_each(sorted_ranks, places)
    return [places[place] for place in range(count)]


def _insert_each(ranks: vec[i64], places: vec[i64]) -> None:
    """Sort ranks that are nearly sorted, and places with them; equal ranks keep their order."""
    later: i64 = 1
    while later < len(ranks):
        rank, place, to = ranks[later], places[later], later
        while to > 0 and ranks[to - 1] > rank:
            ranks[to] = ranks[to - 1]
            places[to] = places[to - 1]
            to -= 1
        ranks[to] = rank
        places[to] = place
        later += 1
