"""The options of reliable floods, which `flooding`, `drift` and `tof` share."""

from typing import Annotated, Final

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, MINUTE, SECOND, Duration
from precede.protocols.options import Durable, duration, option

_MOST_IDS: Final = 1_000_000


class FloodOptions(Durable, frozen=True, kw_only=True):
    """How floods are relayed, requested again, kept and announced."""

    relay_wait: Annotated[Duration, duration("relay a flood after a random time up to this")] = 0
    backbone: Annotated[
        str,
        option("nodes that relay the floods of others, a connected dominating set: all, or ids as 0 3 5-9"),
    ] = "all"
    ask_after: Annotated[Duration, duration("request a missing flood after this time; 0s: never")] = (
        100 * MILLISECOND
    )
    answer_within: Annotated[
        Duration, duration("answer a request within this time, unless a neighbour has")
    ] = 50 * MILLISECOND
    retention: Annotated[
        Duration, duration("keep floods this long, while running, for neighbours that missed them")
    ] = 10 * MINUTE
    keep_bytes: Annotated[
        int, option("keep at most this many payload bytes of delivered floods for neighbours; 0: unlimited")
    ] = 0
    beacon: Annotated[Duration, duration("shortest time between two digests of a node; 0s: no digests")] = (
        SECOND
    )
    beacon_longest: Annotated[Duration, duration("longest time between two digests while all agree")] = MINUTE
    beacon_redundancy: Annotated[int, option("skip a digest after this many equal ones from neighbours")] = 3


def parse_node_ids(text: str) -> frozenset[int] | None:
    """Return the ids in a text such as `0 3 5-9`, or None for `all`. Raise BadInput for any other text."""
    if text.strip() == "all":
        return None
    ids: set[int] = set()
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        try:
            span = range(int(first), int(last or first) + 1)
        except ValueError:
            raise BadInput(f"expected node ids such as '0 3 5-9', or 'all', got {text!r}") from None
        if not span or len(span) > _MOST_IDS:
            raise BadInput(f"node ids {text!r}: {part!r} is empty or has more than {_MOST_IDS:,} ids")
        ids.update(span)
    return frozenset(ids)
