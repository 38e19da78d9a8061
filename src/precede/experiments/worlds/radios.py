"""Radios that a world of contacts can name: typical bandwidth, set-up time of a contact, and range.

The values are round figures for devices in the field, not the rates on a data sheet; a scenario's own keys go
before them. `ble`: LE 1M with data length extension carries about 0.7 Mbit/s of payload; discovery and
connection take about two seconds. `wifi`: 802.11n between phones, about 25 Mbit/s; forming a group takes about
five seconds. `lora`: spreading factor 7 at 125 kHz, 5.5 kbit/s; every packet has a preamble and a header. The
legal duty cycle of LoRa in Europe (1 %) is not applied: set `bandwidth = 6.8` for its mean.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from precede.core.instants import MILLISECOND, SECOND, Duration

RadioName: TypeAlias = Literal["ble", "wifi", "lora"]


class Radio(Struct, frozen=True):
    """The defaults of one radio: bytes per second, time per message, set-up of a contact, metres, sharing."""

    bandwidth: float
    overhead: Duration
    setup: Duration
    range: float
    share: str


RADIOS: Final[Mapping[str, Radio]] = {
    "ble": Radio(85_000.0, 10 * MILLISECOND, 2 * SECOND, 30.0, "node"),
    "wifi": Radio(3_000_000.0, 2 * MILLISECOND, 5 * SECOND, 100.0, "air"),
    "lora": Radio(680.0, 40 * MILLISECOND, 0, 2000.0, "air"),
}


def with_radio(name: RadioName | None, written: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the keys of a world, with those of its radio for keys that are not written."""
    if name is None:
        return dict(values)
    radio = RADIOS[name]
    return {key: value if key in written else getattr(radio, key) for key, value in values.items()}
