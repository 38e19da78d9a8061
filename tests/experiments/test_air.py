"""Worlds with air: radios, set-up time, interference; and generators that a scenario names."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import precede
from precede.cli import main
from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import build_world, prepare
from precede.experiments.scenario import read_scenario
from precede.sim.networks.interference import InterferingContacts

WORLD = """
[world]
kind = "contacts"
nodes = {nodes}
meetings = {meetings}
{keys}
[workload]
script = {script}
size = 1000
[run]
protocol = "unordered"
"""


def deliveries(
    folder: Path, meetings: str, script: str, keys: str, nodes: int = 4
) -> dict[tuple[str, str], float]:
    """When each node delivered the message of each other one, in seconds."""
    path = folder / "world.toml"
    path.write_text(WORLD.format(nodes=nodes, meetings=meetings, script=script, keys=keys))
    log = precede.simulate(path).frame("arrow").to_pylist()
    return {
        (row["message_source"], row["node"]): row["at_us"] / 1e6
        for row in log
        if row["kind"] == "delivered" and row["node"] != row["message_source"]
    }


PAIRS = '[["0", "1", "0s", "60s"], ["2", "3", "0s", "60s"]{more}]'
TWO = '[{{ src = "0", at = "1s" }}, {{ src = "{other}", at = "1s" }}]'


def test_neighbours_share_the_air_and_others_do_not(tmp_path: Path) -> None:
    script = TWO.format(other="2")
    apart, near = PAIRS.format(more=""), PAIRS.format(more=', ["0", "2", "0s", "60s"]')
    slow = 'bandwidth = 100\nshare = "{share}"'
    for meetings in (apart, near):
        free = deliveries(tmp_path, meetings, script, slow.format(share="link"))
        assert free["0", "1"] == free["2", "3"] == pytest.approx(11, abs=0.5)
    shared = deliveries(tmp_path, apart, script, slow.format(share="air"))
    assert shared["0", "1"] == shared["2", "3"] == pytest.approx(11, abs=0.5)
    shared = deliveries(tmp_path, near, script, slow.format(share="air"))
    ends = sorted(shared.values())
    assert all(later - earlier >= 9.9 for earlier, later in pairwise(ends)), "one at a time"


def test_two_senders_that_do_not_hear_each_other_take_turns_at_a_receiver(tmp_path: Path) -> None:
    hidden = '[["0", "1", "0s", "60s"], ["1", "2", "0s", "60s"]]'
    script = TWO.format(other="2")
    keys = 'bandwidth = 100\nshare = "{share}"'
    both = deliveries(tmp_path, hidden, script, keys.format(share="node"), nodes=3)
    assert both["0", "1"] == both["2", "1"]
    shared = deliveries(tmp_path, hidden, script, keys.format(share="air"), nodes=3)
    assert abs(shared["0", "1"] - shared["2", "1"]) >= 9.9


CROWD = """
[world]
kind = "contacts"
generator = "random-waypoint"
nodes = 12
duration = "20min"
field = [60, 60]
bandwidth = 2000
share = "air"
[workload]
poisson = "2min"
until = "5min"
size = 500
[run]
protocol = "unordered"
"""


def test_every_message_arrives_over_shared_air_and_no_transfer_disturbs_another(tmp_path: Path) -> None:
    (tmp_path / "crowd.toml").write_text(CROWD)
    sink = TableSink()
    prepared = prepare(read_scenario(str(tmp_path / "crowd.toml"), seed=3), sink)
    network = prepared.built.network
    assert isinstance(network, InterferingContacts)
    is_disturbed, begun = network._is_disturbed, []

    def watched(sender: int, receiver: int) -> bool:
        disturbed = is_disturbed(sender, receiver)
        if not disturbed:
            begun.append(sender)
            for other, to in network._on_air.items():
                assert other not in network._in_range[receiver]
                assert sender not in network._in_range[to]
        return disturbed

    network._is_disturbed = watched  # type: ignore[method-assign]
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    kinds = sink.events()["kind"].to_pylist()
    assert len(begun) > 100
    assert kinds.count("delivered") == 12 * kinds.count("broadcast"), "the field is small: all meet all"


def test_a_contact_carries_nothing_while_it_is_set_up(tmp_path: Path) -> None:
    meetings = '[["0", "1", "0s", "3s"], ["0", "1", "10s", "20s"]]'
    script = '[{ src = "0", at = "0s" }]'
    assert deliveries(tmp_path, meetings, script, "", 2)["0", "1"] == 0
    assert deliveries(tmp_path, meetings, script, 'setup = "5s"', 2)["0", "1"] == 15
    ble = deliveries(tmp_path, meetings, script, 'radio = "ble"', 2)["0", "1"]
    assert ble == pytest.approx(2 + 0.01 + 1000 / 85_000, abs=0.05)
    mixed = deliveries(tmp_path, meetings, script, 'radio = "ble"\nsetup = "0s"', 2)["0", "1"]
    assert mixed == pytest.approx(ble - 2, abs=0.01)


def test_a_summary_says_that_transfers_take_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meetings, script = '[["0", "1", "0s", "3s"]]', '[{ src = "0", at = "0s" }]'
    path = tmp_path / "world.toml"
    for keys, says in (("", True), ("bandwidth = 1000", False), ('radio = "lora"', False)):
        path.write_text(WORLD.format(nodes=2, meetings=meetings, script=script, keys=keys))
        assert main(["simulate", str(path), "--out", str(tmp_path / "run")]) == 0
        assert ("transfers take no time" in capsys.readouterr().out) == says


GENERATED = """
[world]
kind = "contacts"
generator = "{generator}"
nodes = 12
duration = "2h"
{keys}
[workload]
poisson = "1h"
[run]
protocol = "fifo"
"""


@pytest.mark.parametrize(
    ("generator", "keys"),
    [
        ("random-waypoint", "field = [200, 200]\npause = 5"),
        ("random-walk", 'field = [200, 200]\nleg = "30s"\nspeed = [1, 2]'),
        ("gauss-markov", "field = [200, 200]\nalpha = 0.5"),
        ("street-waypoint", "field = [400, 400]\nblocks = [4, 4]\nrange = 60"),
        ("working-day", 'blocks = [4, 4]\noffices = 2\nradio = "wifi"'),
    ],
)
def test_a_scenario_names_a_generator(tmp_path: Path, generator: str, keys: str) -> None:
    path = tmp_path / "walk.toml"
    path.write_text(GENERATED.format(generator=generator, keys=keys))
    run = precede.simulate(path, seed=4)
    assert run.measures()["deliveries"] > run.measures()["broadcasts"]
    assert run.verify().verdict == "holds"
    assert run.run_id == precede.simulate(path, seed=4).run_id


@pytest.mark.parametrize(
    ("generator", "keys", "text"),
    [
        ("random-walk", "pause = 5", r"walk.toml:7: pause: has no effect with the generator random-walk"),
        (
            "random-waypoint",
            "speed = [0, 1]",
            r"walk.toml:4: generator: speed: expected least and most above 0",
        ),
        ("street-waypoint", "blocks = [0, 1]", r"walk.toml:7: blocks: expected two numbers above 0"),
        ("gauss-markov", 'radio = "zigbee"', r"walk.toml:7: radio"),
        ("street-waypoint", 'streets = "none.csv"', r"walk.toml:7: streets: no such file"),
        ("street-waypoint", f'streets = "{"x" * 300}"', r"walk.toml:7: streets: no such file"),
    ],
)
def test_a_wrong_key_of_a_generator_is_named_with_its_line(
    tmp_path: Path, generator: str, keys: str, text: str
) -> None:
    path = tmp_path / "walk.toml"
    path.write_text(GENERATED.format(generator=generator, keys=keys))
    with pytest.raises(BadInput, match=text):
        build_world(read_scenario(str(path)))
