"""Settings files of The ONE as scenarios: what is read, what is named, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import precede
from precede.cli import main
from precede.core.errors import BadInput
from precede.experiments.scenario import read_scenario

SETTINGS = """
# a scenario in the form of The ONE
Scenario.name = walk
Scenario.endTime = 7.2k
Scenario.nrofHostGroups = 2
Scenario.updateInterval = 0.1
bt.type = SimpleBroadcastInterface
bt.transmitSpeed = 250k
bt.transmitRange = 40
Group.movementModel = RandomWaypoint
Group.router = SprayAndWaitRouter
Group.bufferSize = 5M
Group.waitTime = 0, 120
Group.speed = 0.5, 1.5
Group.msgTtl = 60
Group.interface1 = bt
Group.nrofHosts = 12
Group1.groupID = p
Group2.groupID = c
Group2.speed = 2.7, 13.9
Group2.nrofHosts = 4
SprayAndWaitRouter.nrofCopies = 6
SprayAndWaitRouter.binaryMode = true
MovementModel.rngSeed = [3; 4; 5]
MovementModel.worldSize = 400, 300
MovementModel.warmup = 1000
Events.nrof = 1
Events1.class = MessageEventGenerator
Events1.interval = 25,35
Events1.size = 500k,1M
Events1.hosts = 0,12
Events1.prefix = M
Report.nrofReports = 1
Report.report1 = MessageStatsReport
Report.warmup = 60
"""


def written(folder: Path, text: str) -> str:
    path = folder / "settings.txt"
    path.write_text(text)
    return str(path)


def test_a_settings_file_is_a_scenario(tmp_path: Path) -> None:
    run = read_scenario(written(tmp_path, SETTINGS))
    assert run.world == {
        **{"kind": "contacts", "generator": "random-waypoint", "nodes": 12, "duration": "7200s"},
        **{"speed": [0.5, 1.5], "pause": [0.0, 120.0], "field": [400.0, 300.0], "generator_seed": 3},
        **{"bandwidth": 250_000.0, "range": 40.0},
    }
    assert run.workload == {
        **{"every": "uniform(300, 420)", "first": "uniform(0, 420)", "size": 750_000, "to": 1},
        "lifetime": "60min",
    }
    assert run.options == {"dissemination": "spray_and_wait", "buffer": 5_000_000, "copies": 6}
    assert (run.end, run.warmup) == ("7200s", "60s")
    assert run.unread == ("Group2.speed = 2.7, 13.9", "Group2.nrofHosts = 4", "MovementModel.warmup = 1000")


def test_it_runs_and_the_summary_names_what_was_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, SETTINGS)
    assert main(["simulate", path, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "  not read: MovementModel.warmup = 1000" in said
    assert "Report" not in said
    assert "deliveries" in said
    assert precede.simulate(path).run_id == read_scenario(path).id


def test_contacts_of_a_file_of_events_are_the_world(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text("1 CONN 0 1 up\n5 CONN 0 1 down\n7 CONN 1 2 up\n9 CONN 1 2 down\n")
    text = SETTINGS.replace("Events.nrof = 1", "Events.nrof = 2\nEvents2.class = ExternalEventsQueue")
    text = text.replace("RandomWaypoint", "StationaryMovement") + "Events2.filePath = events.txt\n"
    run = read_scenario(written(tmp_path, text))
    assert run.world["contacts"] == str(tmp_path / "events.txt")
    assert "generator" not in run.world
    assert "range" not in run.world


def test_hosts_on_a_map_walk_on_its_streets(tmp_path: Path) -> None:
    (tmp_path / "map.wkt").write_text("LINESTRING (0 0, 100 0, 100 80)\nLINESTRING (100 80, 0 0)\n")
    text = SETTINGS.replace("= RandomWaypoint", "= ShortestPathMapBasedMovement")
    text += "MapBasedMovement.nrofMapFiles = 1\nMapBasedMovement.mapFile1 = map.wkt\n"
    run = precede.simulate(written(tmp_path, text))
    assert run.measures()["deliveries"] > run.measures()["broadcasts"]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "RandomWaypoint",
            "BusMovement",
            r"settings.txt:10: Group1.movementModel: 'BusMovement' cannot be read",
        ),
        (
            "SprayAndWaitRouter\n",
            "WaveRouter\n",
            r"settings.txt:11: Group1.router: 'WaveRouter' cannot be read",
        ),
        ("25,35", "often", r"settings.txt:29: Events1.interval: expected numbers, got 'often'"),
        ("MessageEventGenerator", "OtherGenerator", r"settings.txt: no generator of messages"),
        ("Events.nrof = 1", "Events nrof", r"settings.txt:27: expected `Key.name = value`"),
    ],
)
def test_what_is_needed_and_cannot_be_read_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, error: str
) -> None:
    with pytest.raises(BadInput, match=error):
        read_scenario(written(tmp_path, SETTINGS.replace(old, new)))
