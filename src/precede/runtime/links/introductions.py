"""Who the members are: signed introductions, and the directory of those that were accepted.

A member has an Ed25519 key that signs, an X25519 key for links, and an id of 128 bits: the BLAKE2b hash of its
Ed25519 key. Its name is a label. An introduction binds the name to both keys under the member's own signature,
so anybody may pass it on. With a roster, only the keys of the roster are accepted. Without one, members trust
everybody who holds the group key: then a member's keys are derived from its name and prove nothing.

Protocols number members by 47 bits of the hash of their names. Two names with one number are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from precede.core.identity import NodeId
from precede.runtime.evidence.signatures import SigningKey, is_signed
from precede.runtime.links.noise import public_bytes

ID_BYTES: Final = 16
MOST_NAME_BYTES: Final = 64
MOST_MEMBERS: Final = 4096
MOST_TOGETHER: Final = 64
"""How many introductions travel together: a receiver checks their signatures at once."""
_PURPOSE: Final = b"precede introduction 1"
_LINK_PURPOSE: Final = b"precede link key"


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """A member's keys and name. `version` ascends when a member changes its link key."""

    name: str
    signing: bytes
    link: bytes
    version: int
    signature: bytes

    @property
    def id(self) -> bytes:
        return member_id(self.signing)

    def is_genuine(self, group: str) -> bool:
        """Return whether it is well-formed, and signed for this group with the key that it names."""
        if len(self.link) != 32:
            return False
        if not 0 < len(self.name.encode()) <= MOST_NAME_BYTES or not 0 <= self.version < 1 << 62:
            return False
        content = _signed_bytes(group, self.name, self.signing, self.link, self.version)
        return is_signed(self.signing, self.signature, content)


class Identity:
    """A member's secret keys, derived from one secret of 32 bytes.

    The link key depends on `version` too, so that it can be replaced while the identity stays. (The Ed25519 key
    could be converted into a link key; then it could never be replaced.)
    """

    def __init__(self, secret: bytes, version: int = 0) -> None:
        assert len(secret) == 32
        self.signing = SigningKey(secret)
        derived = blake2b(version.to_bytes(8, "big"), key=secret, person=_LINK_PURPOSE, digest_size=32)
        self.link = X25519PrivateKey.from_private_bytes(derived.digest())
        self.version = version

    @classmethod
    def shared(cls, group: str, name: str) -> Identity:
        """Return the identity of a member in a group without a roster: everybody can derive it."""
        return cls(blake2b(name.encode(), key=blake2b(group.encode()).digest(), digest_size=32).digest())

    def introduce(self, group: str, name: str) -> Introduction:
        signing, link = self.signing.public, public_bytes(self.link)
        signature = self.signing.sign(_signed_bytes(group, name, signing, link, self.version))
        return Introduction(name, signing, link, self.version, signature)


class Directory:
    """The accepted introductions by number, and counts of refused ones; without a `roster`, any key will do."""

    def __init__(
        self,
        group: str,
        own: Introduction,
        number_of: Callable[[str], NodeId],
        roster: Mapping[str, bytes] | None = None,
        on_accepted: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.own = own
        self.refused: Counter[str] = Counter()
        self._on_accepted = on_accepted
        self._group = group
        self._number_of = number_of
        self._roster = None if roster is None else dict(roster)
        self._members: dict[NodeId, Introduction] = {}
        self._by_hint: dict[bytes, list[NodeId]] = {}
        self._digest = 0
        self._add(number_of(own.name), own)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def digest(self) -> int:
        """A hash of everything accepted, 64 bits: two members with equal digests know the same members."""
        return self._digest

    def find(self, number: NodeId) -> Introduction | None:
        return self._members.get(number)

    def with_hint(self, hint: bytes) -> list[NodeId]:
        return self._by_hint.get(hint, [])

    def everybody(self) -> list[Introduction]:
        return list(self._members.values())

    def accept(self, introduction: Introduction) -> NodeId | None:
        """Add a member and return its number; None if it is refused (`refused` counts the reasons)."""
        try:
            number = self._number_of(introduction.name)
        except KeyError:
            self.refused["unknown_name"] += 1
            return None
        known = self._members.get(number)
        if known == introduction:
            return number
        reason = self._reason_against(introduction, known)
        if reason is not None:
            self.refused[reason] += 1
            return None
        if known is not None and known.version > introduction.version:
            return number  # an older introduction of the same member, passed on late
        self._add(number, introduction)
        return number

    def replace(self, roster: Mapping[str, bytes]) -> list[NodeId]:
        """Use another roster from now on. Returns the numbers of the members whose keys it no longer has."""
        self._roster = dict(roster)
        gone = [number for number, each in self._members.items() if self._roster.get(each.name) != each.signing]
        for number in gone:
            introduction = self._members.pop(number)
            self._digest ^= _digest_of(introduction)
            self._by_hint[introduction.id[:4]].remove(number)
        return gone

    def _reason_against(self, introduction: Introduction, known: Introduction | None) -> str | None:
        if known is None and len(self._members) >= MOST_MEMBERS:
            return "too_many_members"
        if known is not None and known.name != introduction.name:
            return "number_taken"
        if introduction.signing != self._expected_key(introduction.name):
            return "unknown_key"
        if known is not None and known.version == introduction.version:
            return "version_reused"  # two link keys under one version
        if not introduction.is_genuine(self._group):
            return "not_genuine"
        return None

    def _expected_key(self, name: str) -> bytes | None:
        """Return the only key that is accepted of a member of this name; None if the roster lacks it."""
        if self._roster is not None:
            return self._roster.get(name)
        return Identity.shared(self._group, name).signing.public

    def _add(self, number: NodeId, introduction: Introduction) -> None:
        before = self._members.get(number)
        for each in (before, introduction):
            if each is not None:
                self._digest ^= _digest_of(each)
        self._members[number] = introduction
        self._on_accepted(introduction.name)
        if before is None:
            self._by_hint.setdefault(introduction.id[:4], []).append(number)


def _digest_of(introduction: Introduction) -> int:
    return int.from_bytes(blake2b(msgspec.msgpack.encode(introduction), digest_size=8).digest())


def member_id(signing: bytes) -> bytes:
    return blake2b(signing, digest_size=ID_BYTES).digest()


def _signed_bytes(group: str, name: str, signing: bytes, link: bytes, version: int) -> bytes:
    return msgspec.msgpack.encode((_PURPOSE, group, name, signing, link, version))
