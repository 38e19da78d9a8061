"""The options of `prs` and `prs_mobile`."""

from typing import Annotated, Literal, TypeAlias

from precede.protocols.cells.options import ProxyOptions
from precede.protocols.multicast.options import CHECKPOINT, Checkpoint, MulticastOptions
from precede.protocols.options import option
from precede.protocols.outbox import RTO, Rto

Encoding: TypeAlias = Literal["tuples", "bitmap"]

_Pruning: TypeAlias = Annotated[
    Literal["printed", "optimal", "fat"],
    option("printed: section 5.2; optimal: Kshemkalyani and Singhal; fat: for experiments"),
]
_Case: TypeAlias = Annotated[
    Literal["multicast", "broadcast"], option("broadcast: section 8.2, one row, every message to all")
]
_Encoding: TypeAlias = Annotated[Encoding, option("how the size of a barrier is counted")]


class PrsOptions(MulticastOptions, frozen=True, kw_only=True):
    """Which form of the algorithm runs, and how its control information is counted."""

    pruning: _Pruning = "printed"
    case: _Case = "multicast"
    encoding: _Encoding = "tuples"


class PrsMobileOptions(ProxyOptions, frozen=True, kw_only=True):
    """The options of hosts and stations, and those of `prs` for the role `node`.

    A struct has only one base, so the options of `prs` are repeated here.
    """

    stations: Annotated[int, option("members below this number are stations; needed to address all hosts")] = 0
    rto: Rto = RTO
    durable: Annotated[bool, option("persist the state that a restart needs")] = False
    checkpoint: Checkpoint = CHECKPOINT
    pruning: _Pruning = "printed"
    case: _Case = "multicast"
    encoding: _Encoding = "tuples"
