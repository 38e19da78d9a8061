"""A roster that an administrator signs, so that members can be removed and enrolled while the group runs.

Each signed roster has an epoch. A member accepts only rosters that the administrator signed for its group, with
a higher epoch than the one it has. `since` is the epoch in which a member's present key was enrolled. In
protocols that do not draw incarnations it becomes the incarnation of a store that begins with this key: the
messages of a new device never have the ids of messages of the lost one.

A retired key counts for the messages that it signed up to a number. Without this, members that have not
received these messages yet would wait for them for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from precede.core.errors import BadInput
from precede.runtime.evidence.signatures import SigningKey, is_signed
from precede.runtime.names import check_roster

MOST_EPOCHS: Final = 1 << 15
"""The most epochs of a roster: an epoch can become an incarnation, which has fifteen bits."""
MOST_RETIRED: Final = 256
_PURPOSE: Final = b"precede roster 1"


class RetiredKey(NamedTuple):
    """A key that was removed, and the incarnation and number of its member's last message that counts."""

    name: str
    public: bytes
    incarnation: int
    number: int


class SignedRoster(msgspec.Struct, frozen=True):
    """The public keys of all members, signed by the group's administrator.

    >>> from precede import SignedRoster
    >>> from precede.runtime.links.authorship import public_of
    >>> admin, ana = b"a" * 32, public_of(b"b" * 32)
    >>> first = SignedRoster.signed(admin, "picnic", {"ana": ana})
    >>> second = SignedRoster.signed(admin, "picnic", {}, after=first)
    >>> first.epoch, second.epoch, second.removed_from(first.members)
    (0, 1, ['ana'])
    """

    epoch: int
    members: dict[str, bytes]
    since: dict[str, int]
    signature: bytes
    retired: tuple[RetiredKey, ...] = ()

    @classmethod
    def signed(
        cls,
        admin: bytes,
        group: str,
        members: Mapping[str, bytes],
        after: SignedRoster | None = None,
        last: Mapping[str, tuple[int, int]] | None = None,
    ) -> SignedRoster:
        """Sign a roster with the administrator's secret seed. `after` is the roster that it replaces.

        `last` has, for a member whose key it removes, the incarnation and number of the last message that
        counts (`Delivered.id` of the last one that was delivered).
        """
        check_roster(members)
        epoch = 0 if after is None else after.epoch + 1
        if epoch >= MOST_EPOCHS:
            raise BadInput(f"roster: no epoch after {epoch - 1}")
        since = {}
        for name, public in members.items():
            kept = after is not None and after.members.get(name) == public
            since[name] = after.since[name] if kept and after is not None else epoch
        retired = () if after is None else after.retired
        for name, (incarnation, number) in (last or {}).items():
            if after is None or members.get(name) == after.members.get(name):
                raise BadInput(f"roster: the key of {name!r} is not replaced or removed")
            retired = (*retired, RetiredKey(name, after.members[name], incarnation, number))
        if len(retired) > MOST_RETIRED:
            raise BadInput(f"roster: more than {MOST_RETIRED} retired keys")
        signature = SigningKey(admin).sign(_content(group, epoch, members, since, retired))
        return cls(epoch, dict(members), since, signature, retired)

    def check(self, group: str, admin: bytes) -> None:
        """Raise BadInput unless the administrator with this public key signed it for this group."""
        check_roster(self.members)
        try:
            content = _content(group, self.epoch, self.members, self.since, self.retired)
        except KeyError:  # a member without an epoch
            content = None
        if content is None or not is_signed(admin, self.signature, content):
            raise BadInput(f"roster: not signed by the administrator of the group {group!r}")
        if not 0 <= self.epoch < MOST_EPOCHS:
            raise BadInput(f"roster: no epoch: {self.epoch}")

    def removed_from(self, members: Mapping[str, bytes]) -> list[str]:
        """Return the names in `members` that this roster lacks, or has with another key."""
        return [name for name, public in members.items() if self.members.get(name) != public]


def _content(
    group: str,
    epoch: int,
    members: Mapping[str, bytes],
    since: Mapping[str, int],
    retired: tuple[RetiredKey, ...],
) -> bytes:
    entries = [(name, members[name], since[name]) for name in sorted(members)]
    return msgspec.msgpack.encode((_PURPOSE, group, epoch, entries, retired))
