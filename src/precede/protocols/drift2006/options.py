"""The options of `drift` and `tof`."""

from __future__ import annotations

from typing import Annotated

from precede.core.instants import SECOND, Duration
from precede.protocols.floods.options import FloodOptions
from precede.protocols.floods.virtual_flooding import Policy
from precede.protocols.options import duration, option


class TofOptions(FloodOptions, frozen=True, kw_only=True):
    """What TOF and DRIFT share: who sends, who delivers, and when a silent source floods a dummy."""

    sources: Annotated[str, option("members that are sources at the beginning: all, or ids as 0 3 5-9")] = "all"
    destinations: Annotated[str, option("nodes that deliver: all, or ids as 0 3 5-9")] = "all"
    quiet: Annotated[
        Duration, duration("flood a dummy when a message waits and nothing arrived for this long; 0s: never")
    ] = 5 * SECOND
    bootstrap_after: Annotated[
        Duration, duration("found a group when no source answers for this long; 0s: never")
    ] = 5 * SECOND


class DriftOptions(TofOptions, frozen=True, kw_only=True):
    """What DRIFT adds: virtual flooding, view changes, bounded timestamps."""

    limit: Annotated[int | None, option("most virtual-flooding entries on a packet; none: all sources")] = None
    policy: Annotated[Policy, option("which entries travel, under a limit")] = "least_sent"
    two_entries: Annotated[bool, option("keep two entries per source at most (section 4.4)")] = False
    shadow: Annotated[bool, option("observe when TOF would have delivered each message")] = False
    suspect_after: Annotated[
        Duration, duration("vote to remove a source that is missing for this long; 0s: never")
    ] = 0
    vote_every: Annotated[Duration, duration("repeat the request of a view change after this time")] = SECOND
    bounded: Annotated[
        int | None, option("bits of the timestamps that travel, 6 to 20 (section 4.4); none: all")
    ] = None
