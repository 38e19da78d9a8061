"""Options that clean a trace, raw Bluetooth sightings, BonnMotion: what is kept, rejected and told."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.core.instants import HOUR, MINUTE, SECOND
from precede.traces.formats.gtfs_chain import LONGEST_WAIT, NEAR_M, TripEnds, chained
from precede.traces.formats.gtfs_motion import Anchor
from precede.traces.reading import Loaded, Options, load
from tests.traces.loading import loaded, reasons

S = SECOND


def contacts(result: Loaded) -> list[tuple[str, str, float, float]]:
    return [(a, b, start / S, end / S) for a, b, start, end in result.contacts]


OVERLAPS = "a,b,start,end\nb,a,8,20\na,b,0,10\na,b,20,22\na,b,21,30\na,c,5,6\n"


def test_overlapping_rows_are_merged_or_the_first_one_stays(tmp_path: Path):
    union = loaded(tmp_path, OVERLAPS, "contacts")
    assert contacts(union) == [("a", "b", 0, 30), ("a", "c", 5, 6)]
    first = loaded(tmp_path, OVERLAPS, "contacts", overlap="first")
    assert contacts(first) == [("a", "b", 0, 10), ("a", "b", 20, 22), ("a", "c", 5, 6)]
    assert reasons(first) == [(line, "overlaps an earlier contact of its pair") for line in (2, 5)]
    assert "  read with: --overlap first" in first.summary.lines()


def test_first_keeps_no_two_rows_of_a_pair_that_overlap(tmp_path: Path):
    random = Random(5)
    rows = [(random.choice("ab"), random.choice("cd"), random.randrange(50)) for _ in range(200)]
    text = "".join(f"{a},{b},{start},{start + random.randrange(1, 9)}\n" for a, b, start in rows)
    result = loaded(tmp_path, text, "contacts", overlap="first")
    assert len(result.rejects) > 20
    for one, two in pairwise(result.contacts):
        assert one[:2] != two[:2] or one.end_us < two.start_us


def test_scans_without_length_get_one(tmp_path: Path):
    text = "a,b,100,100\na,b,150,400\na,c,10,20\n"
    assert reasons(loaded(tmp_path, text, "contacts")) == [(1, "contact without length")]
    result = loaded(tmp_path, text, "contacts", at_least=120 * S)
    assert contacts(result) == [("a", "b", 100, 400), ("a", "c", 10, 130)]
    assert result.summary.notes["contacts extended to 2min"] == 2
    assert "  read with: --at-least 2min" in result.summary.lines()


IMOTES = """1 2 0 120 1 0
2 1 60 240 1 0
1 21 30 30 1 0
3 1 500 500
2 2 1 5
3 x
"""


def test_sightings_of_both_devices_are_one_contact(tmp_path: Path):
    result = loaded(tmp_path, IMOTES, "sightings", at_least=120 * S)
    assert contacts(result) == [("1", "2", 0, 240), ("1", "3", 500, 620), ("1", "21", 30, 150)]
    assert reasons(result) == [(5, "a node in contact with itself"), (6, "too few fields")]
    assert result.summary.facts["external devices (seen, never scanning)"] == "1"
    internal = loaded(tmp_path, IMOTES, "sightings", at_least=120 * S, internal=True)
    assert contacts(internal) == [("1", "2", 0, 240), ("1", "3", 500, 620)]
    assert (3, "sighting of an external device") in reasons(internal)
    assert internal.summary.nodes == 3


def test_sightings_of_devices_with_names_need_no_header(tmp_path: Path):
    assert contacts(loaded(tmp_path, "a b 0 9\nb c 20 29\n", "sightings")) == [
        ("a", "b", 0, 9),
        ("b", "c", 20, 29),
    ]


def test_columns_of_sightings_are_found_by_name(tmp_path: Path):
    text = "start;end;seen_user_id;user_id\n0;9;b;a\n"
    assert contacts(loaded(tmp_path, text, "sightings")) == [("a", "b", 0, 9)]
    text = "0 9 b a\n"
    listed = loaded(tmp_path, text, "sightings", columns="start,end,seen,id")
    assert contacts(listed) == [("a", "b", 0, 9)]
    with pytest.raises(BadInput, match=r"file\.sightings:1: no column for end"):
        loaded(tmp_path, "id,seen,start\na,b,1\n", "sightings")


NS2 = """$node_(0) set X_ 0
$node_(0) set Y_ 0
$node_(1) set X_ 5
$node_(1) set Y_ 5
$ns_ at 10.0 "$node_(0) setdest 100 0 10"
$ns_ at 30.0 "$node_(2) setdest 9 9 1"
$ns_ at 40.0 "$node_(2) setdest 9 19 1"
"""


def test_ns2_nodes_are_there_for_the_whole_trace_or_while_they_move(tmp_path: Path):
    def stays(result: Loaded) -> dict[str, tuple[float, float]]:
        movement = result.mobility()
        there = movement.presence()
        rows = zip(there.node.tolist(), there.enter_us.tolist(), there.leave_us.tolist(), strict=True)
        return {movement.names[node]: (enter / S, leave / S) for node, enter, leave in rows}

    whole = loaded(tmp_path, NS2, "ns2")
    assert stays(whole) == {"0": (0, 50), "1": (0, 50), "2": (0, 50)}
    motion = loaded(tmp_path, NS2, "ns2", presence="motion")
    assert stays(motion) == {"0": (10, 20), "2": (30, 50)}
    assert motion.summary.notes["nodes that never move, left out"] == 1
    assert motion.summary.nodes == 2
    with pytest.raises(BadInput, match="--presence never: expected whole or motion"):
        loaded(tmp_path, NS2, "ns2", presence="never")


def test_bonnmotion_has_a_line_for_each_node(tmp_path: Path):
    text = "0.0 1 2 10.0 11 2 20 11 2\n0 0 0 5 5 5 1\n# comment\n3 0 0 2 1 1\n0 0 0 4 0 8\n"
    result = loaded(tmp_path, text, "bonnmotion")
    assert [tuple(row) for row in result.segments] == [
        ("0", 0, 1.0, 2.0, 10 * S, 11.0, 2.0),
        ("0", 10 * S, 11.0, 2.0, 20 * S, 11.0, 2.0),
        ("3", 0, 0.0, 0.0, 4 * S, 0.0, 8.0),
    ]
    assert reasons(result) == [
        (2, "not a whole number of waypoints"),
        (4, "time out of order for this node"),
    ]
    assert result.summary.nodes == 2
    deep = loaded(tmp_path, "0 1 2 99 10 11 2 99\n", "bonnmotion", columns="time,x,y,z")
    assert [tuple(row) for row in deep.segments] == [("0", 0, 1.0, 2.0, 10 * S, 11.0, 2.0)]


def test_trips_without_blocks_are_joined_at_termini():
    def trip(start: int, end: int, places: tuple[float, float]) -> TripEnds:
        here, there = places
        return TripEnds(
            Anchor(start * MINUTE, start * MINUTE, here, 0.0), Anchor(end * MINUTE, end * MINUTE, there, 0.0)
        )

    trips = {
        "out": trip(0, 20, (0, 5000)),
        "late out": trip(5, 25, (0, 5000)),
        "back": trip(30, 50, (5000 + NEAR_M, 0)),
        "too early": trip(22, 40, (5000 + 2 * NEAR_M, 0)),
        "again": trip(50, 70, (0, 5000)),
        "tomorrow": trip(70 + (LONGEST_WAIT + HOUR) // MINUTE, 400, (5000, 0)),
    }
    vehicles = chained(trips)
    assert vehicles == {
        "out": "out",
        "late out": "late out",
        "too early": "too early",
        "back": "out",  # out has waited longest
        "again": "too early",  # which reached the terminus at minute 40, before back did
        "tomorrow": "tomorrow",  # nobody waits that long
    }


def test_a_chained_feed_has_fewer_vehicles_and_the_same_trips(tmp_path: Path):
    feed = tmp_path / "feed"
    feed.mkdir()
    (feed / "stops.txt").write_text("stop_id,stop_lat,stop_lon\nA,47.0,8.0\nB,47.0,8.05\n")
    (feed / "trips.txt").write_text("route_id,service_id,trip_id\n" + "".join(f"R,S,t{k}\n" for k in range(6)))
    (feed / "calendar_dates.txt").write_text("service_id,date,exception_type\nS,20240101,1\n")
    calls = ["trip_id,arrival_time,departure_time,stop_id,stop_sequence"]
    for k in range(6):
        here, there = ("A", "B") if k % 2 == 0 else ("B", "A")
        calls += [f"t{k},{8 + k}:00:00,{8 + k}:00:00,{here},1", f"t{k},{8 + k}:30:00,{8 + k}:30:00,{there},2"]
    (feed / "stop_times.txt").write_text("\n".join(calls) + "\n")
    apart, joined = load(feed, "gtfs"), load(feed, "gtfs", Options(chain=True))
    assert (apart.summary.nodes, joined.summary.nodes) == (6, 1)
    assert apart.summary.facts["trips"] == joined.summary.facts["trips"] == "6"
    assert joined.summary.notes["trips without a block, joined to an earlier trip at its terminus"] == 5
    there = joined.mobility().presence()
    assert (there.enter_us.tolist(), there.leave_us.tolist()) == ([8 * HOUR], [13 * HOUR + 30 * MINUTE])


def test_an_option_of_another_format_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, lake = tmp_path / "scans.dat", str(tmp_path / "lake")
    path.write_text(IMOTES)
    call = ["ingest", str(path), "--lake", lake]
    assert main([*call, "--as", "sightings", "--at-least", "120s", "--internal"]) == 0
    said = capsys.readouterr().out
    assert "read with: --at-least 2min --internal" in said
    assert "rejected, sighting of an external device: 1 (line 3)" in said
    for options, text in (
        (["--as", "tij", "--overlap", "first"], "--overlap: not an option of `--as tij`"),
        (["--as", "sightings", "--overlap", "last"], "--overlap last: expected union or first"),
        (["--as", "sightings", "--at-least", "soon"], "--at-least: "),
        (["--as", "bonnmotion", "--columns", "time,x"], "it lacks y"),
        (["--as", "bonnmotion", "--columns", "time,x,y,z,w"], "scans.dat: none of 6 rows is bonnmotion"),
    ):
        assert main([*call, *options]) == 2
        said = capsys.readouterr().err
        assert text in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("across", [-1, 0, 1])
@pytest.mark.parametrize("up", [-1, 0, 1])
def test_a_trip_is_joined_to_one_that_ended_nearby_in_any_direction(across: int, up: int):
    """The two stops lie on both sides of a border of the squares in which stops are looked up."""
    end = Anchor(10 * S, 10 * S, across * 1.0, up * 1.0)
    start = Anchor(20 * S, 20 * S, 0.0, 0.0)
    far = Anchor(0, 0, 9e5, 9e5)
    trips = {"a": TripEnds(far, end), "b": TripEnds(start, Anchor(30 * S, 30 * S, 9e5, -9e5))}
    assert chained(trips) == {"a": "a", "b": "a"}
