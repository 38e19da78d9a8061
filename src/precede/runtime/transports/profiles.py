"""Profiles: settings that fit a kind of network, measured together (docs/reference/byte-budget.md).

A profile sets how often beacons are sent, how large frames are, how long answers take, and when digests are
sent. All members of a group need the same profile.
"""

from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.settings import did_you_mean
from precede.runtime.transports.transport import Transport

ProfileName: TypeAlias = Literal["lan", "internet", "ble", "lora"]
"""The profiles that `join` offers: see docs/guides/profiles.md."""


class Profile(Struct, frozen=True):
    """Settings for one kind of network. `options` are those of the dissemination `gossip`."""

    network: str
    beacon: float
    """Seconds between two beacons. A neighbour that is silent for more than four of them is gone."""
    largest: int | None
    """Most bytes of a frame, if the transport has no smaller limit; None: the transport's."""
    pace: int
    """How many times longer than on a LAN an answer takes."""
    digest: str
    digest_longest: str
    relay_wait: str

    @property
    def is_slow(self) -> bool:
        """Whether only the disseminations that are made for such networks fit."""
        return self.pace > 4

    @property
    def options(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "digest_longest": self.digest_longest,
            "relay_wait": self.relay_wait,
            "pace": self.pace,
        }

    def apply(self, transport: Transport) -> None:
        """Limit a transport's frames, and tell it how slow it is."""
        if self.largest is not None:
            transport.largest = min(transport.largest, self.largest)
        transport.pace = max(transport.pace, float(self.pace))


PROFILES: Final[dict[str, Profile]] = {
    "lan": Profile("Ethernet, Wi-Fi, one machine", 0.5, None, 1, "60ms", "8s", "10ms"),
    "internet": Profile("UDP between sites, mobile networks", 5.0, 1_200, 4, "300ms", "60s", "50ms"),
    "ble": Profile("Bluetooth Low Energy, 180 bytes a frame", 5.0, 180, 8, "600ms", "60s", "100ms"),
    "lora": Profile("LoRa, 200 bytes a frame, 700 bytes a second", 30.0, 200, 40, "6s", "120s", "1s"),
}


def find_profile(name: object, order: str) -> Profile:
    """Return a profile by its name. Raise BadInput if there is none, or if it does not fit an order."""
    profile = PROFILES.get(name) if isinstance(name, str) else None
    if profile is None:
        raise BadInput(f"profile: {name!r} is none of {', '.join(PROFILES)}{did_you_mean(str(name), PROFILES)}")
    if profile.is_slow and order in ("multicast", "total"):
        raise BadInput(
            f"profile={name!r} is for the orders none, fifo, causal and delta: order={order!r} sends more than "
            "such a network carries"
        )
    return profile
