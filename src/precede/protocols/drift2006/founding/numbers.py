"""The numbers of a list of founders and of a group: hashes, never clocks."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from precede.core.identity import NodeId
from precede.protocols.drift2006.packets import ViewRecord
from precede.protocols.drift2006.state import CONFIGURED_GROUP

_AGREED: Final = 1 << 62
"""The bit that tells groups that founders agreed on from all others; an integer on the wire has 63 bits."""


def list_number(founders: Sequence[NodeId]) -> int:
    return _hash("founders", *map(str, sorted(founders)))


def group_number(founders: int, record: ViewRecord, agreed: bool) -> int:
    streams = (f"{source}.{serial}" for source, serial in record.voters)
    return (_AGREED if agreed else 1) | _hash(str(founders), *streams)


def is_agreed(group: int) -> bool:
    return group >= _AGREED


def gives_way(group: int, other: int) -> bool:
    """Do members of `group` that meet the group `other` move to it?

    Never from a configured group, or one that its founders agreed on: its members rely on it. Otherwise they
    move to a group that founders agreed on, or to one with a lower number.
    """
    if is_agreed(group) or group == CONFIGURED_GROUP:
        return False
    return is_agreed(other) or other < group


def _hash(*words: str) -> int:
    """Hash some words to a number of 62 bits, the same at every node."""
    return int.from_bytes(blake2b(" ".join(words).encode(), digest_size=8).digest(), "big") >> 2
