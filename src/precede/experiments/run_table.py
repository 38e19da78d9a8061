"""The `[run]` table of a scenario: the protocol and its options, the seed, the end, and what is logged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from precede.core.instants import Duration, parse_duration
from precede.experiments.keys import duration, key

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
