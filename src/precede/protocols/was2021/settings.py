"""The times and limits of WAS: the paper gives none (papers/was2021/reading.md says which were fitted)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration
from precede.protocols.registry import Option

LIFE: Final = 1 << 32
"""Connection numbers of a host's next incarnation start here, so they are above all of its earlier life's."""


class Settings(Struct, frozen=True):
    """The options in their own types."""

    ack_interval: Duration
    gap_ack: Duration
    hole_ack: Duration
    retransmit: Duration
    guard: Duration
    private_window: int
    uplink_retransmit: Duration
    uplink_window: int
    station_ack_interval: Duration
    connect_retry: Duration
    down_after: Duration
    collision_limit: float
    stations: int
    durable: bool


OPTIONS: Final[dict[str, Option]] = {
    "ack_interval": Option("duration", 750 * MILLISECOND, "a host acknowledges at most this often"),
    "gap_ack": Option("duration", 20 * MILLISECOND, "a host reports a new hole within this time"),
    "hole_ack": Option("duration", 60 * MILLISECOND, "and reports one that stays open this often"),
    "retransmit": Option("duration", SECOND, "a station repeats an unacknowledged message after this time"),
    "guard": Option("duration", 30 * MILLISECOND, "a reported hole is not filled again within this time"),
    "private_window": Option("int", 128, "recovered messages under way to one host at once"),
    "uplink_retransmit": Option(
        "duration", 300 * MILLISECOND, "a host repeats its own message after this time"
    ),
    "uplink_window": Option("int", 32, "own messages under way to the station at once"),
    "station_ack_interval": Option("duration", 100 * MILLISECOND, "a station acknowledges at most this often"),
    "connect_retry": Option("duration", 100 * MILLISECOND, "a host repeats join, connect, recover and leave"),
    "down_after": Option("duration", MINUTE, "a host not heard for this long is declared down"),
    "collision_limit": Option(
        "float", 1.0, "declare the longest silent host down when more of the transmissions are repetitions"
    ),
    "stations": Option("int", 0, "how many stations there are; a recovery waits until all are known (0: any)"),
    "durable": Option("bool", False, "persist what a host must know after a crash"),
}


def read_settings(options: Mapping[str, Any]) -> Settings:
    """The options as a struct; windows and timer durations must be positive."""
    for name in ("private_window", "uplink_window", "connect_retry", "down_after", "retransmit"):
        if options[name] <= 0:
            raise BadInput(f"option {name!r} must be positive")
    return Settings(**options)
