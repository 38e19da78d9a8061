"""Upgrades a store of version 0.1, whose node ids were 31 bits of the hash of a name; now they are 47 bits.

Every id in it is replaced by the new id of the same name, so all names must be known. Signatures of 0.1 cover
the old ids: a member signs its own messages again when it sends them, and drops those of others, which their
sources spread again.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.runtime.names import node_id
from precede.runtime.store import Store

_LEAST_HASH: Final = 1 << 16
"""A number below this is a count, not the hash of a name."""


def old_node_id(name: str) -> NodeId:
    """Return the node id that a name had in version 0.1."""
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big") >> 1


def upgrade(store: Store, names: Iterable[str]) -> None:
    """Replace the node ids of a store of version 0.1, in one transaction; a newer store stays as it is.

    Raises BadInput, with the store unchanged, if it has messages of a member that is not among `names`.
    """
    if not store.is_old:
        return
    ids = {old_node_id(name): node_id(name) for name in names}
    unknown = sum(1 for source in store.sources() if source >= _LEAST_HASH and source not in ids)
    if unknown:
        store.abandon()
        raise BadInput(
            f"{store.path}: written by version 0.1, with messages of {unknown} members whose names are not"
            " given; list every member in members= once, to upgrade it"
        )
    store.rewrite(lambda value: _translated(value, ids))


def _translated(value: Any, ids: Mapping[NodeId, NodeId]) -> Any:
    match value:
        case bool():
            return value
        case int():
            return ids.get(value, value)
        case list() | tuple():
            return [_translated(each, ids) for each in value]
        case dict():
            return {_translated(key, ids): _translated(each, ids) for key, each in value.items()}
    return value
