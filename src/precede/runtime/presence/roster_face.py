"""The part of `Group` that replaces keys and rosters while the member runs."""

from __future__ import annotations

from precede.runtime.driver import Driver
from precede.runtime.links.neighbours import Links
from precede.runtime.membership import Membership
from precede.runtime.names import MemberNames
from precede.runtime.presence.presence import Presence
from precede.runtime.rosters import SignedRoster
from precede.runtime.topics.topics import Topics


class RosterFace:
    """Gives a group its methods `rekey` and `update_roster`."""

    _membership: Membership
    _all_links: list[Links]
    _driver: Driver
    _presence: Presence
    _names: MemberNames
    _topics: Topics

    def rekey(self, *group_secrets: bytes) -> None:
        """Replace the group's secrets while running: the first encrypts from now on, any of them decrypts.

        Raises BadInput if there is none, if one has not 32 bytes, or if the member joined without a key.
        """
        self._membership.rekey(group_secrets)

    def update_roster(self, roster: SignedRoster) -> None:
        """Put a newer roster into force, which the administrator has signed (`admin=` of `join`).

        Sessions with members that it lacks end at once, and later messages that they sign are refused. Raises
        BadInput for a roster that is not newer, not signed by the administrator, or without this member.
        """
        for name in self._membership.update(roster, self._all_links, self._driver.store):
            self._presence.left(self._names.id_of(name), "the new roster lacks it")
        self._topics.follow_roster(roster)
