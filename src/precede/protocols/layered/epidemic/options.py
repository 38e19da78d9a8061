"""The options of `epidemic`."""

from typing import Annotated, Literal, TypeAlias

from precede.core.instants import SECOND, Duration
from precede.protocols.options import Durable, duration, option

OrderName: TypeAlias = Literal["received", "random", "oldest", "newest", "per_source"]
EvictionPolicy: TypeAlias = Literal["first", "random", "deadline"]


class EpidemicOptions(Durable, frozen=True, kw_only=True):
    """How many messages a node carries, which it evicts, and in which order it sends them."""

    order: Annotated[OrderName, option("which messages of a transfer go first")] = "received"
    cache: Annotated[int, option("most messages carried; 0: unlimited")] = 0
    cache_bytes: Annotated[int, option("most payload bytes carried; 0: unlimited")] = 0
    evict: Annotated[
        EvictionPolicy, option("which message leaves a full cache: first in, random, next deadline")
    ] = "first"
    sweep: Annotated[Duration, duration("expired messages may stay in the cache this much longer")] = (
        10 * SECOND
    )
    refresh: Annotated[
        Duration,
        duration("repeat the summary of the cache this often; 0s: on contact only (for links without loss)"),
    ] = 0
