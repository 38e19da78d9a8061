"""What happens to nodes from outside, as plain data: who is there when, who hears whom, who says what.

A simulation yields a plan; real nodes can be put through the same one. Instants are the world's own, from 0.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from precede.core.effects import Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant


class Said(Struct, frozen=True, array_like=True):
    """An application broadcast something, and its node took it."""

    at: Instant
    node: NodeId
    size: int
    to: tuple[NodeId, ...] | None = None
    lifetime: Duration | None = None


class LinkChange(Struct, frozen=True, array_like=True):
    """Two nodes can hear each other from now on, or not any more."""

    at: Instant
    a: NodeId
    b: NodeId
    up: bool
    over: Medium = 0


class Stay(Struct, frozen=True, array_like=True):
    """A node is there from `start` to `end` (None: to the last). `ends` is how: it leaves, or it crashes."""

    node: NodeId
    start: Instant
    end: Instant | None = None
    ends: str = "left"


class Plan(Struct, frozen=True, kw_only=True):
    """A run as its nodes live through it. Node ids are places in `names`."""

    run_id: str
    protocol: str
    order: str
    options: dict[str, Any]
    names: tuple[str, ...]
    roles: tuple[str, ...]
    members: tuple[NodeId, ...]
    stays: tuple[Stay, ...]
    links: tuple[LinkChange, ...]
    said: tuple[Said, ...]
    end: Instant
    linger: Duration = 0
