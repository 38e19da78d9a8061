"""The options of `drift` and `tof`."""

from typing import Annotated, Literal, TypeAlias

from precede.core.instants import SECOND, Duration
from precede.protocols.floods.options import FloodOptions
from precede.protocols.floods.virtual_flooding import Policy
from precede.protocols.options import duration, option

Founding: TypeAlias = Literal["given", "agreed", "alone"]


class TofOptions(FloodOptions, frozen=True, kw_only=True):
    """The options that TOF and DRIFT share: who sends, who delivers, when dummies go, how a group begins."""

    sources: Annotated[str, option("members that are sources at the beginning: all, or ids as 0 3 5-9")] = "all"
    destinations: Annotated[str, option("nodes that deliver: all, or ids as 0 3 5-9")] = "all"
    quiet: Annotated[
        Duration, duration("flood a dummy when a message waits and nothing arrived for this long; 0s: never")
    ] = 5 * SECOND
    bootstrap_after: Annotated[
        Duration, duration("found a group when no source answers for this long; 0s: never")
    ] = 5 * SECOND
    founding: Annotated[
        Founding,
        option(
            "given: the sources are a group from the beginning; agreed: a quorum of them founds it (a majority"
            " with durable, else all); alone: this node founds one, which gives way to an agreed one"
        ),
    ] = "given"
    returning: Annotated[
        bool, option("this founder has lost its store: it enters the group as it is, and never votes on it")
    ] = False


class DriftOptions(TofOptions, frozen=True, kw_only=True):
    """The options that only DRIFT has: virtual flooding, view changes, bounded timestamps."""

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
