"""The swarm really draws what it is there for: a situation that never happens in its worlds is missing here."""

from __future__ import annotations

import pytest

from tests.swarm.situations import count, count_planned

CRASHES = {"crash", "crash in recovery", "restart with its store"}
SIZES = {"payload of no bytes", "payload of 64 kB"}
NETWORK = {"loss", "partition", "several partitions", "stall"}
EXPECTED = {
    "fifo": CRASHES | SIZES | NETWORK | {"16 nodes or more", "silence of hours", "duplication", "wrong clocks"},
    "delta_causal": CRASHES
    | SIZES
    | {"late start", "leave", "stall", "wrong clocks", "bandwidth", "16 nodes or more", "loss", "partition"}
    | {"restart without its store", "discarded: evicted", "discarded: expired_pending", "discarded: late"},
    "drift": CRASHES | SIZES | NETWORK | {"restart without its store", "late start", "leave", "wrong clocks"},
    "drift+founding": CRASHES | SIZES | NETWORK | {"restart without its store", "late start"},
    "vcube": {"crash", "late start", "leave", "16 nodes or more", "stall"} | SIZES,
    "prs": CRASHES | SIZES | NETWORK | {"16 nodes or more", "silence of hours", "duplication", "wrong clocks"},
    "was": CRASHES | SIZES | {"restart without its store", "late start", "leave", "loss"},
    "ck": SIZES | {"late start", "loss"},
}


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", EXPECTED)
def test_every_situation_happens(protocol: str) -> None:
    found = count(protocol, range(1_000_000, 1_000_120))
    assert EXPECTED[protocol] - set(found) == set(), found


def test_crashes_in_recovery_and_odd_sizes_happen() -> None:
    found = count("fifo", range(1_000_000, 1_000_040))
    assert CRASHES | SIZES | {"stall"} <= set(found), found


CLOCKS = {"wrong clocks", "clock jump"}
CELLS = SIZES | {"kind cellular", "stalled station", "cut wire", "wrong clocks", "loss"}
KINDS = {"kind contacts", "kind point_to_point", "kind flood"}
LAYERED = KINDS | SIZES | NETWORK | CLOCKS | {"one-way link", "16 nodes or more", "silence of hours"}
PLANNED = {
    "fifo": LAYERED | {"refresh", "duplication"},
    "causal_barrier": LAYERED | {"refresh", "unpruned barriers"},
    "delta_causal": LAYERED
    | {"refresh", "lazy expiry", "monotone deadlines", "unpruned barriers", "full cache", "lost state"}
    | {"clocks beyond the promise", "lifetimes of messages", "bandwidth"},
    "fifo+gossip": LAYERED,
    "drift": SIZES | NETWORK | CLOCKS | {"one-way link", "false suspicion", "lost state"},
    "drift+founding": SIZES | NETWORK | {"one-way link", "clock jump", "lost state", "agreed founding"},
    "vcube": SIZES | {"kind switched", "kind point_to_point", "diagnosis", "stall", "clock jump"},
    "prs": SIZES | NETWORK | CLOCKS | {"one-way link", "16 nodes or more", "silence of hours"},
    "was": CELLS | {"lost state"},
    "ck": CELLS,
    "prs_mobile": CELLS,
}


@pytest.mark.parametrize("protocol", PLANNED)
def test_every_situation_is_drawn(protocol: str) -> None:
    found = count_planned(protocol, range(1_000_000, 1_000_300))
    assert PLANNED[protocol] - set(found) == set(), found
