"""The swarm really draws what it is there for: a situation that never happens in its worlds is missing here."""

from __future__ import annotations

from typing import Any

import pytest

from precede.experiments.swarm.draw import lives, rare
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
    "drift+meeting": CRASHES | {"late start"},
    "prs": CRASHES
    | SIZES
    | NETWORK
    | {"16 nodes or more", "silence of hours", "duplication", "wrong clocks"}
    | {"late start", "leave", "restart without its store"},
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
CELLS = SIZES | {"kind cellular", "stalled station", "wrong clocks", "loss", "crash of a station"}
CELLS |= {"cut wire", "cut wire during a handoff"}
KINDS = {"kind contacts", "kind point_to_point", "kind flood"}
IDS = {"ids around 2^31", "highest ids"}
NUMBERS = {"numbers around 2^31", "highest numbers"}
LOST = {f"lost state, {kind}" for kind in KINDS}
LIFETIMES = {f"lifetimes of messages, {kind}" for kind in KINDS}
SILENCE = {"silence of hours"}
RECOVERY = {"planned crash in recovery"}
LAYERED = (
    KINDS
    | SIZES
    | NETWORK
    | CLOCKS
    | IDS
    | LOST
    | RECOVERY
    | {"one-way link", "16 nodes or more", "64 nodes", "silence of hours", "lossy contacts"}
)
MULTICAST = SIZES | NETWORK | CLOCKS | IDS | {"one-way link", "64 nodes", "silence of hours"}
MULTICAST |= RECOVERY | {"planned late join", "planned leave", "lost state", "processes near 2^63"}
PLANNED = {
    "unordered": LAYERED | NUMBERS | LIFETIMES,
    "fifo": LAYERED | NUMBERS | {"refresh", "duplication"},
    "causal_barrier": LAYERED | NUMBERS | {"refresh", "refresh where nothing is lost", "unpruned barriers"},
    "delta_causal": LAYERED
    | {"refresh", "lazy expiry", "monotone deadlines", "unpruned barriers", "full cache", "lost state"}
    | LIFETIMES
    | {"clocks beyond the promise", "bandwidth"},
    "fifo+gossip": LAYERED,
    "drift": SIZES | NETWORK | CLOCKS | RECOVERY | SILENCE | {"one-way link", "false suspicion", "lost state"},
    "drift+founding": SIZES
    | NETWORK
    | RECOVERY
    | SILENCE
    | {"one-way link", "clock jump", "lost state", "agreed founding"},
    "drift+meeting": SIZES | NETWORK | RECOVERY | SILENCE | {"one-way link", "groups that meet"},
    "vcube": SIZES
    | SILENCE
    | {"64 nodes", "planned late join", "planned leave"}
    | {"kind switched", "kind point_to_point", "diagnosis", "stall", "clock jump", "false suspicion"},
    "prs": MULTICAST,
    "rst": MULTICAST,
    "ses": MULTICAST,
    "was": CELLS | RECOVERY | {"lost state"},
    "ck": CELLS,
    "prs_mobile": CELLS,
}


@pytest.mark.parametrize("protocol", PLANNED)
def test_every_situation_is_drawn(protocol: str) -> None:
    planned = count_planned(protocol, range(1_000_000, 1_000_300))
    assert PLANNED[protocol] - set(planned) == set(), planned


NEVER_DRAWN = [
    (lives, "_lose_store", "fifo", LOST),
    (lives, "_come_and_go", "prs", {"planned late join", "planned leave"}),
    (lives, "_count_from_afar", "causal_barrier", IDS | NUMBERS),
    (lives, "_suspect_falsely", "vcube", {"false suspicion"}),
    (lives, "_crash_station", "was", {"crash of a station"}),
    (lives, "_expire_early", "unordered", LIFETIMES),
    (rare, "_one_way", "fifo", {"one-way link"}),
    (rare, "_stalled_station", "ck", {"stalled station"}),
    (rare, "_cut_wires", "ck", {"cut wire", "cut wire during a handoff"}),
    (rare, "_clocks_in_cells", "ck", {"wrong clocks"}),
    (rare, "_clocks_beyond_promise", "delta_causal", {"clocks beyond the promise"}),
    (rare, "_jump", "drift", {"clock jump"}),
    (rare, "_refresh", "causal_barrier", {"refresh where nothing is lost"}),
    (rare, "_lazy_expiry", "delta_causal", {"lazy expiry"}),
    (rare, "_unpruned", "causal_barrier", {"unpruned barriers"}),
    (rare, "_vcube_anywhere", "vcube", {"kind point_to_point"}),
    (rare, "_lossy_contacts", "causal_barrier", {"lossy contacts"}),
    (rare, "_crowd_of_vcube", "vcube", {"64 nodes"}),
]


@pytest.mark.parametrize(
    ("module", "dropped", "protocol", "lacking"), NEVER_DRAWN, ids=[each[1] for each in NEVER_DRAWN]
)
def test_a_situation_that_is_never_drawn_is_noticed(
    module: Any, dropped: str, protocol: str, lacking: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [(chance * (add.__name__ != dropped), add) for chance, add in module._SITUATIONS]
    monkeypatch.setattr(module, "_SITUATIONS", kept)
    planned = count_planned(protocol, range(1_000_000, 1_000_300))
    assert PLANNED[protocol] - set(planned) == lacking


def test_every_rare_situation_is_noticed_when_it_is_never_drawn() -> None:
    drawn = [add.__name__ for module in (lives, rare) for _, add in module._SITUATIONS]
    assert sorted(drawn) == sorted(name for _, name, _, _ in NEVER_DRAWN)
