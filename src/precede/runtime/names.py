"""Names of members, the node ids that stand for them on the wire, and the keys of a named group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.messages import Packet
from precede.runtime.links.noise import KEY_BYTES

MOST_HELD: Final = 256
"""How many packets wait for the introduction of an author."""
WAIT_S: Final = 5.0
"""How long a packet waits for it."""
_IMPATIENT_S: Final = 60.0
_MOST_NAMES: Final = 65_536


def node_id(name: str) -> NodeId:
    """Return the node id of a member's name: 47 bits of its hash, the same on every machine.

    It is a label. A member proves who it is with keys, whose ids have 128 bits (`links/introductions.py`).
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "big") >> 1


def group_key(secret: bytes, group: str) -> bytes:
    """Derive the key of one group from a shared secret, so that no two groups have the same key."""
    return blake2b(b"precede group" + group.encode(), key=secret, digest_size=KEY_BYTES).digest()


def pseudonym(name: str, key: bytes) -> str:
    """Return a pseudonym of a name, the same in every member's log. Only the key leads back to the name."""
    return "m" + blake2b(name.encode(), key=key, digest_size=6, person=b"precede-log").hexdigest()


def check_names(names: Sequence[str]) -> None:
    """Raise BadInput if a name occurs twice, or if two names have one node id."""
    names_of: dict[NodeId, str] = {}
    for name in names:
        node = node_id(name)
        if names_of.get(node) == name:
            raise BadInput(f"{name!r} occurs twice")
        if node in names_of:
            raise BadInput(f"{names_of[node]!r} and {name!r} have the same node id; rename one of them")
        names_of[node] = name


def check_roster(roster: Mapping[str, bytes]) -> None:
    """Raise BadInput if two names have one node id or one key: one could speak for the other."""
    check_names(list(roster))
    owners: dict[bytes, str] = {}
    for name, public in roster.items():
        if public in owners:
            raise BadInput(f"{owners[public]!r} and {name!r} have the same key; each member makes its own")
        owners[public] = name


class MemberNames:
    """Translates between members' names and node ids.

    With a `book` the ids are those it lists, for protocols that need small ids; else ids are hashes of names.
    """

    def __init__(self, names: Iterable[str], book: Mapping[str, NodeId] | None) -> None:
        self._book = book
        self._names: dict[NodeId, str] = {}
        self.on_learned: Callable[[], None] = lambda: None
        self.add(*names, *(book or ()))

    def add(self, *names: str) -> None:
        self._names.update((self.id_of(name), name) for name in names)
        self.on_learned()

    def learn(self, node: NodeId, name: str) -> None:
        """Note the name that a node gives itself, if it fits the node's id and there is no `book`."""
        new = node not in self._names and len(self._names) < _MOST_NAMES
        if new and self._book is None and node_id(name) == node:
            self._names[node] = name
            self.on_learned()

    def id_of(self, name: str) -> NodeId:
        """Return the node id of a name. Raise KeyError if there is a book that does not list it."""
        return node_id(name) if self._book is None else self._book[name]

    def knows(self, node: NodeId) -> bool:
        """Return whether the name of a node is known."""
        return node in self._names

    def name_of(self, node: NodeId) -> str:
        """Return the name of a node id, or the id in hexadecimal if the name is unknown."""
        name = self._names.get(node)
        return f"{node:08x}" if name is None else name

    def __contains__(self, name: str) -> bool:
        return name in self._names.values()


class UnknownAuthors:
    """Packets with messages of authors whose names are not known yet: they wait for the introductions.

    Neighbours send the introductions that this member lacks, and a message that is relayed to everybody may
    overtake them. A packet waits `WAIT_S` at most. If that was too short, `tell` is called, and nothing waits
    for the next minute: so an author that nobody introduces delays the others once.
    """

    def __init__(self, names: MemberNames, tell: Callable[[NodeId], None]) -> None:
        self._names = names
        self._tell = tell
        self._held: dict[int, tuple[list[NodeId], Callable[[], None]]] = {}
        self._serial = count()
        self._impatient_until = 0.0
        names.on_learned = self._release_known

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, packet: Packet, go_on: Callable[[], None]) -> bool:
        """Call `go_on` when the authors in a packet are known, or `WAIT_S` is over. False: go on now."""
        knows = self._names.knows
        authors = [item.message.id.source for item in packet.written() if not knows(item.message.id.source)]
        loop = asyncio.get_running_loop()
        if not authors or len(self._held) >= MOST_HELD or loop.time() < self._impatient_until:
            return False
        serial = next(self._serial)
        self._held[serial] = (authors, go_on)
        loop.call_later(WAIT_S, self._give_up, serial)
        return True

    def _release_known(self) -> None:
        for serial, (authors, go_on) in list(self._held.items()):
            if all(map(self._names.knows, authors)):
                del self._held[serial]
                go_on()

    def _give_up(self, serial: int) -> None:
        """Let a packet pass whose authors were not introduced in time, and all others that wait."""
        if serial not in self._held:
            return
        self._impatient_until = asyncio.get_running_loop().time() + _IMPATIENT_S
        waiting, self._held = list(self._held.values()), {}
        for authors, go_on in waiting:
            for author in authors:
                if not self._names.knows(author):
                    self._tell(author)
            go_on()
