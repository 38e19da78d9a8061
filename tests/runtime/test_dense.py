"""What a room costs over real sockets: few frames for a broadcast, and everything is delivered."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.rate import run
from benchmarks.rooms import frames_per_broadcast
from precede.runtime.links.keyring import new_key


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("medium", ["memory", "multicast", "unicast"])
@pytest.mark.parametrize("nodes", [5, 10])
def test_a_broadcast_takes_at_most_two_frames_for_each_member(nodes: int, medium: str) -> None:
    cost = asyncio.run(frames_per_broadcast(nodes, "gossip", medium))
    assert cost["deliveries"] == nodes
    assert cost["frames"] <= 2 * nodes


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("unicast", [False, True])
def test_everything_that_members_say_at_a_steady_rate_is_delivered(unicast: bool) -> None:
    result = run({"members": 6, "per_second": 5.0, "seconds": 10.0, "unicast": unicast, "key": new_key()})
    assert result["delivered"] == result["expected"] == 6 * 6 * 50
