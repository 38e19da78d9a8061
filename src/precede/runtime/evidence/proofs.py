"""Two signed headers of one author that contradict each other."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from precede.runtime.evidence.headers import Header
from precede.runtime.evidence.signatures import is_signed

Kind: TypeAlias = Literal["same_id", "branch", "reused_incarnation"]
_TEXTS: Final[dict[str, str]] = {
    "same_id": "signed two different messages with one id",
    "branch": "signed messages that follow two different pasts",
    "reused_incarnation": "used the numbers of one incarnation in two streams",
}


class SignedHeader(msgspec.Struct, frozen=True, gc=False):
    """A header and its author's signature."""

    header: Header
    signature: bytes

    def is_signed_by(self, public: bytes, group: str) -> bool:
        """Return whether the owner of a public key signed this header for a group."""
        return is_signed(public, self.signature, self.header.signed_bytes(group))


class Equivocation(msgspec.Struct, frozen=True, tag="equivocation"):
    """Evidence that a member told two stories: two headers that it signed and that contradict each other.

    `kind` "same_id" (two different messages with one id) and "branch" (two messages that do not follow one
    past) are proofs: an honest member never signs such a pair, however often it crashes. A member that runs
    from a copy of its store can. "reused_incarnation" is a hint: a liar made it, or a member that lost its
    store drew an incarnation that it had before, which happens once in 30,000 starts.

    `holds` needs nothing but the author's public key, so anybody can check it.

    >>> import asyncio, precede
    >>> roster: dict[str, bytes] = {}
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=bytes(32)) as group:
    ...         for evidence in group.status()["evidence"]:
    ...             print(evidence.text, evidence.holds(roster[evidence.author]))
    ...         print(len(group.status()["evidence"]))
    >>> asyncio.run(main())
    0
    """

    kind: Kind
    group: str
    author: str
    public: bytes
    first: SignedHeader
    second: SignedHeader

    @property
    def is_proof(self) -> bool:
        """False for a hint, which an honest member could have caused by accident."""
        return self.kind != "reused_incarnation"

    @property
    def text(self) -> str:
        """What the author did, in one sentence."""
        numbers = sorted({self.first.header.number, self.second.header.number})
        where = f"number {' and '.join(map(str, numbers))} of incarnation {self.first.header.incarnation}"
        return f"{self.author} {_TEXTS[self.kind]} ({where})"

    def holds(self, public: bytes) -> bool:
        """Return whether the owner of this public key signed both headers, and they contradict each other."""
        signed = all(each.is_signed_by(public, self.group) for each in (self.first, self.second))
        return signed and contradiction(self.first.header, self.second.header) == self.kind

    def to_json(self) -> bytes:
        """Return the evidence as a line of JSON, which `from_json` reads."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, line: bytes) -> Equivocation:
        """Read a line that `to_json` wrote. Raise ValueError if it is none. It may still not hold."""
        try:
            return msgspec.json.decode(line, type=cls)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            raise ValueError(f"no evidence: {error}") from None


def contradiction(first: Header, second: Header) -> Kind | None:
    """Return how two headers of one author contradict each other; None if they do not.

    A header with a link names exactly one message, the one before it.
    """
    if (first.source, first.incarnation) != (second.source, second.incarnation):
        return None
    if first.number > second.number:
        first, second = second, first
    if first.nonce != second.nonce:
        same = first.number == second.number and first.body != second.body
        return "reused_incarnation" if same else None
    if first.number == second.number:
        return None if first.link() == second.link() else "same_id"
    if not second.previous:
        return None
    follows = first.number + 1 == second.number
    if second.previous == first.previous or (follows and second.previous != first.link()):
        return "branch"
    return None
