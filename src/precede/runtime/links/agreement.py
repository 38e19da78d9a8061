"""Compares the settings that all members of a group must share, and warns when they differ.

Every beacon ends in a stamp: a digest of the sender's terms (group, order, dissemination, lifetime) and its
clock. A member that hears another digest sends its terms to that address, so both sides can name the setting
that differs. Beacons are sealed for the group and any member can forge them, so a mismatch is reported and
nothing else is done about it.
"""

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Final

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import SECOND, Duration, Instant

STAMP: Final = struct.Struct(">II")
"""The layout of a beacon's stamp: digest of the sender's terms, its clock in seconds."""
VERSION_AT: Final = 16
"""Where a beacon has its wire version, in every version: after node id and boot."""
_TELLINGS: Final = 5
_MOST_TOLD: Final = 1024
_TWIN_BEACONS: Final = 3
_TWIN_RETURNS: Final = 2
_BOOTS: Final = 4
_STRANGER_FRAMES: Final = 4
_MOST_TEXT: Final = 60
_LARGEST_CLOCK_DIFFERENCE: Final = 60 * SECOND
_USUAL: Final = {"profile": "lan"}
"""Terms that a member does not list if they have this value."""
_TERMS: Final = msgspec.msgpack.Decoder(tuple[str, dict[str, str]])

Warn = Callable[[str, str, str], None]
"""A function that gives a warning: it is called with code, text and the peer's name."""


class Agreement:
    """Compares this member's terms with those of others. `lifetime` is None if deadlines do not count."""

    def __init__(
        self,
        name: str,
        terms: Mapping[str, str],
        clock: Callable[[], Instant],
        lifetime: Duration | None,
        name_of: Callable[[NodeId], str],
        warn: Warn,
    ) -> None:
        self._name = name
        self._terms = dict(terms)
        self._clock = clock
        self._lifetime = lifetime
        self._name_of = name_of
        self._warn = warn
        self._told: Counter[NodeId] = Counter()
        self._twin_beacons = 0
        self._boots: dict[NodeId, list[int]] = {}
        self._returns: Counter[NodeId] = Counter()
        self._strange = 0
        text = msgspec.msgpack.encode(self._terms)
        self._digest = int.from_bytes(blake2b(text, digest_size=4).digest())

    def stamp(self) -> bytes:
        """Return the stamp that ends this member's beacons: a digest of its terms, and its clock."""
        return STAMP.pack(self._digest, self._clock() // SECOND & 0xFFFFFFFF)

    def encoded(self) -> bytes:
        return msgspec.msgpack.encode((self._name, self._terms))

    def heard(self, sender: NodeId, stamp: bytes) -> bool:
        """Compare the stamp of a beacon with ours. True if the sender should be told our terms (five times)."""
        digest, seconds = STAMP.unpack(stamp)
        self._compare_clocks(sender, seconds)
        if digest == self._digest or self._told[sender] >= _TELLINGS:
            return False
        if sender not in self._told and len(self._told) >= _MOST_TOLD:
            return False
        self._told[sender] += 1
        return True

    def _compare_clocks(self, sender: NodeId, seconds: int) -> None:
        if self._lifetime is None:
            return
        apart = abs(seconds * SECOND - self._clock()) - SECOND
        if apart > min(self._lifetime // 4, _LARGEST_CLOCK_DIFFERENCE):
            peer = self._name_of(sender)
            text = f"the clocks of {peer} and this member are {apart // SECOND} s apart"
            self._warn("other_clock", f"{text}: messages expire too early or too late; set the clocks", peer)

    def terms_heard(self, data: bytes) -> bool:
        """Warn of each setting in which another member's terms differ. Return False for data without terms."""
        try:
            peer, terms = _TERMS.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
            return False
        peer = peer[:_MOST_TEXT]
        for key in dict.fromkeys((*self._terms, *_USUAL)):
            ours = self._terms.get(key, _USUAL.get(key, "none"))
            theirs = terms.get(key, _USUAL.get(key, "none"))[:_MOST_TEXT]
            if theirs != ours:
                text = f"{peer} has {key} {theirs!r}, this member has {ours!r}: set it alike in the whole group"
                self._warn(f"other_{key}", text, peer)
        return True

    def other_version(self, sender: NodeId, theirs: int, ours: int) -> None:
        """Warn that a beacon of another version of the wire format came."""
        peer = self._name_of(sender)
        text = (
            f"{peer} has version {theirs} of the wire format, this member has {ours}: install the same release"
        )
        self._warn("other_version", text, peer)

    def twin_heard(self) -> None:
        """Count a beacon that has this member's name and is not its own. The third one gives a warning."""
        self._twin_beacons += 1
        if self._twin_beacons == _TWIN_BEACONS:
            text = f"a second member with the name {self._name!r} is running; names must differ"
            self._warn("same_name", text, self._name)

    def session_begun(self, peer: NodeId, boot: int) -> None:
        """Warn if a member's starts alternate. A process that ended does not come back: two run at once."""
        boots = self._boots.setdefault(peer, [])
        if boot in boots[:-1]:
            self._returns[peer] += 1
            if self._returns[peer] == _TWIN_RETURNS:
                name = self._name_of(peer)
                text = f"two processes run as {name!r}: one has a copy of its store, or its key was stolen"
                self._warn("twin", text, name)
        if boots[-1:] != [boot]:
            self._boots[peer] = [*(each for each in boots if each != boot), boot][-_BOOTS:]

    def stranger_heard(self, where: object) -> None:
        """Count a frame that this member cannot open or read. The fourth one gives a warning."""
        self._strange += 1
        if self._strange == _STRANGER_FRAMES:
            text = "frames of a group with another name or key are heard"
            address = f"{where[0]}:{where[1]}" if isinstance(where, tuple) else str(where)
            self._warn("other_key", f"{text} from {address}; if it should be this group, compare both", "")
