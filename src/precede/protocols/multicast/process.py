"""Processes of causal multicast: a node in one incarnation, as one number (prs1997, section 2)."""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from precede.core.identity import MessageId, NodeId

Process: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A node in one incarnation. A node that lost its state is a new process, and gets no earlier messages."""

INCARNATION_SHIFT: Final = 48
NODE_MASK: Final = (1 << INCARNATION_SHIFT) - 1


def process_of(node: NodeId, incarnation: int) -> Process:
    """Return the process of a node in one incarnation. In the first one it equals the node's number."""
    return node | incarnation << INCARNATION_SHIFT


def node_of(process: Process) -> NodeId:
    return process & NODE_MASK


def incarnation_of(process: Process) -> int:
    return process >> INCARNATION_SHIFT


def message_of(process: Process, number: int) -> MessageId:
    return MessageId(process & NODE_MASK, process >> INCARNATION_SHIFT, number)


def is_before(process: Process, node: NodeId, incarnation: int) -> bool:
    return process & NODE_MASK == node and process >> INCARNATION_SHIFT < incarnation
