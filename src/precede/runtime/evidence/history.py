"""The latest signed headers of each author, in which a contradiction is noticed when the second one comes."""

from collections import OrderedDict
from typing import Final, TypeAlias

from precede.runtime.evidence.headers import Header
from precede.runtime.evidence.proofs import Kind, SignedHeader, contradiction

MOST_HEADERS: Final = 256
"""How many headers of one author are remembered."""
MOST_AUTHORS: Final = 1024

Contradiction: TypeAlias = tuple[Kind, SignedHeader, SignedHeader]


class _Headers:
    """The latest headers of one author, by incarnation and number, and by the previous header they name."""

    def __init__(self) -> None:
        self.by_id: OrderedDict[tuple[int, int], SignedHeader] = OrderedDict()
        self.by_previous: dict[bytes, tuple[int, int]] = {}

    def add(self, signed: SignedHeader) -> None:
        header = signed.header
        self.by_id[header.incarnation, header.number] = signed
        if header.previous:
            self.by_previous[header.previous] = (header.incarnation, header.number)
        if len(self.by_id) > MOST_HEADERS:
            oldest, gone = self.by_id.popitem(last=False)
            if self.by_previous.get(gone.header.previous) == oldest:
                del self.by_previous[gone.header.previous]

    def rivals(self, header: Header) -> list[SignedHeader]:
        """Return the headers that may contradict this one: same id, adjacent numbers, same previous header."""
        places = [(header.incarnation, number) for number in range(header.number - 1, header.number + 2)]
        if header.previous in self.by_previous:
            places.append(self.by_previous[header.previous])
        return [self.by_id[place] for place in places if place in self.by_id]


class History:
    """Remembers the latest headers of each author, by public key: 256 of each, of at most 1,024 authors."""

    def __init__(self) -> None:
        self._authors: OrderedDict[bytes, _Headers] = OrderedDict()

    def note(self, public: bytes, signed: SignedHeader) -> Contradiction | None:
        """Remember the first version of a checked header. Return what a later one contradicts, if anything."""
        headers = self._authors.get(public)
        if headers is None:
            headers = self._authors[public] = _Headers()
            if len(self._authors) > MOST_AUTHORS:
                self._authors.popitem(last=False)
        for rival in headers.rivals(signed.header):
            kind = contradiction(rival.header, signed.header)
            if kind is not None:
                return kind, rival, signed
        if (signed.header.incarnation, signed.header.number) not in headers.by_id:
            headers.add(signed)
        return None
