"""Names of members, the node ids that stand for them on the wire, and the keys of a named group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.runtime.links.noise import KEY_BYTES

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
        self.add(*names, *(book or ()))

    def add(self, *names: str) -> None:
        """Learn more names, so that `name_of` can show them."""
        self._names.update((self.id_of(name), name) for name in names)

    def learn(self, node: NodeId, name: str) -> None:
        """Note the name that a node gives itself, if the node's id is the hash of this name.

        Nothing is noted if there is a `book`, or if too many names are known already.
        """
        new = node not in self._names and len(self._names) < _MOST_NAMES
        if new and self._book is None and node_id(name) == node:
            self._names[node] = name

    def id_of(self, name: str) -> NodeId:
        """Return the node id of a name. Raise KeyError if there is a book that does not list it."""
        return node_id(name) if self._book is None else self._book[name]

    def name_of(self, node: NodeId) -> str:
        """Return the name of a node id, or the id in hexadecimal if the name is unknown."""
        return self._names.get(node, f"{node:08x}")

    def __contains__(self, name: str) -> bool:
        return name in self._names.values()
