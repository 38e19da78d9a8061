"""The options of `vcube`."""

from typing import Annotated, Literal

from msgspec import Struct

from precede.core.instants import MILLISECOND, SECOND, Duration
from precede.protocols.options import duration, option


class VCubeOptions(Struct, frozen=True, kw_only=True):
    """How packets are aggregated, which trees they take, and whether crashes are diagnosed."""

    aggregation: Annotated[
        bool, option("hold a message that a child cannot deliver yet; send it with the message it lacks")
    ] = True
    unpack: Annotated[
        Literal["insertion", "causal"], option("in which order the messages of a packet are processed")
    ] = "insertion"
    tree: Annotated[Literal["multiple", "single"], option("one tree per source, or one rooted at node 0")] = (
        "multiple"
    )
    mtu: Annotated[int, option("bytes of the largest packet that several messages share")] = 1500
    diagnosis: Annotated[bool, option("nodes test each other, survive crashes, may join and leave")] = False
    test_every: Annotated[
        Duration, duration("how often a node tests the first node of each cluster", least=MILLISECOND)
    ] = 500 * MILLISECOND
    test_timeout: Annotated[
        Duration,
        duration("no answer within this time is a crash; more than two packets need", least=MILLISECOND),
    ] = SECOND
    compression: Annotated[bool, option("count only vector entries changed since the previous broadcast")] = (
        True
    )
