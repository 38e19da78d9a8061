"""The swarm really draws what it is there for: a situation that never happens in its worlds is missing here."""

from __future__ import annotations

import pytest

from tests.swarm.situations import count

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
