"""The `[run]` table of a scenario: the protocol and its options, the seed, the end, and what is logged."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from precede.core.instants import Duration, parse_duration
from precede.core.settings import nearest
from precede.experiments.keys import duration, key
from precede.measures.energy import Energy

NEVER: Final[Duration] = 0
"""The interval of gauges that means: sizes are never sampled."""


def _gauge_interval(value: Any) -> Duration:
    """Read the interval of gauges: a duration above 0s, or `NEVER` for the word none."""
    if value == "none":
        return NEVER
    if not isinstance(value, str):
        raise ValueError(f"expected a duration such as '20s', got {value!r}")
    interval = parse_duration(value)
    if interval == NEVER:
        raise ValueError('an interval of 0s would stop simulated time (write "none" for never)')
    return interval


def _options(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f'expected a table such as {{ lifetime = "20min" }}, got {value!r}')
    return dict(value)


def _energy(value: Any) -> Mapping[str, float]:
    """Read the model of radios: a table with some of the fields of `Energy`, none of them negative."""
    fields = Energy._fields
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a table such as {{ scan = 0.0016 }}, got {value!r}")
    for name, amount in value.items():
        if name not in fields:
            raise ValueError(f"unknown key {name!r} {nearest(name, fields)}")
        if type(amount) not in (int, float) or not 0 <= amount < float("inf"):
            raise ValueError(f"{name}: expected a number of at least 0, got {amount!r}")
    return dict(value)


class RunTable(Struct, frozen=True, kw_only=True):
    """The keys of `[run]`."""

    protocol: Annotated[str, key("name of the protocol (`precede protocols` lists them)")] = ""
    options: Annotated[
        Mapping[str, Any],
        key("options of the protocol", read=_options, shape='table, as { lifetime = "20min" }'),
    ] = {}
    seed: Annotated[int, key("one seed is one world")] = 1
    end: Annotated[
        Duration | None,
        duration("when the run is over; none: at the world's end, or when nothing is left to do"),
    ] = None
    gauges: Annotated[
        Duration | None,
        key(
            'how often sizes are sampled, "none": never; default: a hundredth of the run',
            read=_gauge_interval,
            shape='duration or "none"',
            reads_none=True,
        ),
    ] = None
    log: Annotated[Literal["full", "messages"], key("which rows are logged; messages: no packet_received")] = (
        "full"
    )
    warmup: Annotated[Duration, duration("messages of this time at the beginning are not measured")] = 0
    cooldown: Annotated[Duration, duration("messages of this time before the end are not measured")] = 0
    energy: Annotated[
        Mapping[str, float],
        key(
            "watts to scan, joules to transmit and to receive a byte; none: a Bluetooth LE radio",
            read=_energy,
            shape="table, as { scan = 0.0016, transmit = 1.3e-7, receive = 1.3e-7 }",
        ),
    ] = {}
