"""Barriers, and the cut that a latecomer goes on from: what another node has delivered.

This module is not compiled: mypyc drops the types of a struct's fields, and msgspec then decodes lists.
"""

from typing import TypeAlias

import msgspec

from precede.core.identity import MessageNumber
from precede.protocols.layered.streams import Stream

Predecessor: TypeAlias = tuple[Stream, MessageNumber]
Barrier: TypeAlias = tuple[Predecessor, ...]


class Cut(msgspec.Struct, frozen=True, array_like=True):
    """What a node has delivered: the last number of each stream, and its `c_barrier`."""

    delivered: Barrier
    barrier: Barrier
