"""Sets of sources in machine words; used only where the package is compiled.

They do what the classes of `sources` do with one long integer, which each operation copies. A word has 64
sources. Bit 63 is the sign, so words are only compared with 0.
"""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from precede.core.identity import NodeId
from precede.protocols.vcube2018.sources import Mask, Row, Share, SourceSet


@final
class MachineRow(Row):
    """`Row` for a compiled package. `bits` are its words that are not 0, `places` their places, descending."""

    def __init__(self, number: int, mask: Mask) -> None:
        super().__init__(number, mask)
        self.places = vec[i64]()
        self.bits = vec[i64]()
        words = _words_of(mask)
        place: i64 = len(words)
        while place > 0:
            place -= 1
            if words[place] != 0:
                self.places = append(self.places, place)
                self.bits = append(self.bits, words[place])


@final
class MachineShare(Share):
    """`Share` for a compiled package. If it has a period, every `_every`-th word from `_first` is `_word`."""

    def __init__(self, mask: Mask, shift: int, period: int = 0) -> None:
        super().__init__(mask, shift, period)
        self._words = vec[i64]() if period else _words_of(mask << shift)
        self._word: i64 = 0
        self._first: i64 = 0
        self._every: i64 = 1
        if period > 64:
            self._first, self._every = shift >> 6, period >> 6
            self._word = _bit(shift)
        elif period:
            self._word = _words_of((mask << shift) & 0xFFFFFFFFFFFFFFFF)[0]

    def word(self, place: i64) -> i64:
        if self._word != 0:  # no conditional expressions: mypyc makes Python's integers of their values
            if place & (self._every - 1) == self._first:
                return self._word
        elif place < len(self._words):
            return self._words[place]
        return 0


@final
class MachineSourceSet(SourceSet):
    """`SourceSet` for a compiled package."""

    def __init__(self, mask: Mask) -> None:
        self.size = mask.bit_count()
        self._words = _words_of(mask)

    def mask(self) -> Mask:
        if self.size == 0:
            return 0
        writer = BytesWriter()
        for word in self._words:
            write_i64_le(writer, word)
        return int.from_bytes(writer.getvalue(), "little")

    def has(self, source: NodeId) -> bool:
        place: i64 = source >> 6
        return place < len(self._words) and self._words[place] & _bit(source) != 0

    def add(self, source: NodeId) -> None:
        place: i64 = source >> 6
        while place >= len(self._words):
            self._words = append(self._words, 0)
        self._words[place] |= _bit(source)
        self.size += 1

    def remove(self, source: NodeId) -> None:
        place: i64 = source >> 6
        self._words[place] ^= _bit(source)
        self.size -= 1

    def take(self, source: NodeId, row: Row) -> bool:
        assert isinstance(row, MachineRow)
        words, places, bits = self._words, row.places, row.bits
        own: i64 = source >> 6
        bit = _bit(source)
        if own >= len(words) or words[own] & bit == 0:
            return False
        k: i64 = _inside(places, len(words))
        while k < len(places):
            place = places[k]
            common = words[place] & bits[k]
            if common != 0 and (place != own or common != bit):
                return False
            k += 1
        words[own] ^= bit
        self.size -= 1
        return True

    def highest(self, row: Row) -> NodeId:
        assert isinstance(row, MachineRow)
        words, places, bits = self._words, row.places, row.bits
        k: i64 = _inside(places, len(words))
        while k < len(places):
            common = words[places[k]] & bits[k]
            if common != 0:
                return places[k] << 6 | _highest_bit(common)
            k += 1
        return -1

    def highest_beside(self, row: Row, other: SourceSet | None, share: Share) -> NodeId:
        assert isinstance(row, MachineRow)
        assert isinstance(share, MachineShare)
        words, places, bits = self._words, row.places, row.bits
        received = other._words if isinstance(other, MachineSourceSet) else vec[i64]()
        k: i64 = _inside(places, len(words))
        while k < len(places):
            place = places[k]
            common = words[place] & bits[k]
            if common != 0:
                if place < len(received):
                    common &= ~received[place]
                common &= share.word(place)
                if common != 0:
                    return place << 6 | _highest_bit(common)
            k += 1
        return -1


def _words_of(mask: Mask) -> vec[i64]:
    """Return the words of a mask, the lowest first, without words of 0 at the end."""
    size: int = (mask.bit_length() + 63) // 64
    encoded: bytes = mask.to_bytes(8 * size, "little")
    words = vec[i64]()
    for place in range(size):
        words = append(words, read_i64_le(encoded, 8 * place))
    return words


def _inside(places: vec[i64], width: i64) -> i64:
    """Return how many of these places, which descend, are outside of a set with `width` words."""
    k: i64 = 0
    while k < len(places) and places[k] >= width:
        k += 1
    return k


def _bit(source: i64) -> i64:
    """Return the word with the bit of a source."""
    return _shifted(1, source & 63)


def _shifted(word: i64, bits: i64) -> i64:
    """Shift a word left. mypyc shifts parameters as words of 64 bits, constants as words of 32."""
    return word << bits


def _highest_bit(word: i64) -> i64:
    """Return the place of the highest bit of a word that is not 0."""
    if word < 0:
        return 63
    highest: i64 = 0
    width: i64 = 32
    while width > 0:
        if word >> width != 0:
            word >>= width
            highest += width
        width >>= 1
    return highest
