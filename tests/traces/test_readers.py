"""The rules of each format on small files; hostile files give one line of BadInput."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from precede.core.errors import BadInput
from precede.core.instants import HOUR, MINUTE, SECOND
from precede.traces.formats.gtfs import _shape
from precede.traces.formats.gtfs_feed import Feed, Services
from precede.traces.formats.gtfs_motion import Anchor, Shape, _forward, trip_legs
from precede.traces.reading import FORMATS, Loaded, Options, Reading, load
from precede.traces.records import MessageRow, Summary
from precede.traces.writers import write_messages, write_ns2, write_one_movement
from tests.traces.loading import loaded, reasons

S = SECOND


def segments(result: Loaded) -> list[tuple[object, ...]]:
    return [tuple(row) for row in sorted(result.segments)]


def test_tij_windows_end_at_t_and_are_joined(tmp_path: Path):
    result = loaded(tmp_path, "20 a b\n40 b a X Y\n40 a c\n80 a b\n80 a b\n60 a b\n7 d d\n9 e\n", "tij")
    assert [tuple(row) for row in sorted(result.contacts)] == [
        ("a", "b", 0, 40 * S),
        ("a", "b", 60 * S, 80 * S),
        ("a", "c", 20 * S, 40 * S),
    ]
    assert reasons(result) == [
        (5, "same window as before"),
        (6, "time before the pair's last"),
        (7, "a node in contact with itself"),
        (8, "too few fields"),
    ]
    assert loaded(tmp_path, "10 a b\n15 a b\n", "tij", window=5 * S).contacts[0].start_us == 5 * S


NS2 = """
$node_(1) set Z_ 0.0
$node_(1) set Y_ 20
$node_(1) set X_ 10.0
$god_ set-dist 1 2 3
$ns_ at 10.0 "$node_(1) setdest 110.0 20.0 10.0"
$ns_ at 15.0 "$node_(1) setdest 60.0 70.0 5.0"
$ns_ at 20.0 "$node_(1) setdest 0.0 0.0 0.0"
$ns_ at 3.6 "$node_(2) setdest 5.0 5.0 1.0"
$ns_ at 3.0 "$node_(2) setdest 5.0 5.0 1.0"
$ns_ at 4 "$node_(2) setdest 5 5 -1"
$node_(1) set X_ 3
$ns_ at 30 "$node_(3) setdest 1 nan 1"
set opt(x) 5
"""


def test_ns2_ends_with_the_last_motion_and_not_with_one_that_was_replaced(tmp_path: Path):
    text = """$node_(1) set X_ 0
$node_(1) set Y_ 0
$ns_ at 1.0 "$node_(1) setdest 1000 0 1.0"
$ns_ at 2.0 "$node_(1) setdest 5 0 1.0"
"""
    assert segments(loaded(tmp_path, text, "ns2"))[-1] == ("1", 2 * S, 1.0, 0.0, 6 * S, 5.0, 0.0)


def test_tij_refuses_contacts_of_the_one(tmp_path: Path):
    with pytest.raises(BadInput, match=r":1: contacts of The ONE, not SocioPatterns: use --as one"):
        loaded(tmp_path, "12.5 CONN 3 4 up\n", "tij")


def test_ns2_a_new_destination_replaces_the_old_one(tmp_path: Path):
    result = loaded(tmp_path, NS2, "ns2")
    assert segments(result) == [
        ("1", 0, 10.0, 20.0, 10 * S, 10.0, 20.0),
        ("1", 10 * S, 10.0, 20.0, 15 * S, 60.0, 20.0),
        ("1", 15 * S, 60.0, 20.0, 20 * S, 60.0, 45.0),
        ("2", 0, 5.0, 5.0, 3_600_000, 5.0, 5.0),
        ("2", 3_600_000, 5.0, 5.0, 20 * S, 5.0, 5.0),
    ]
    assert reasons(result) == [
        (10, "time out of order for this node"),
        (11, "negative speed"),
        (12, "set of a node that has moved"),
        (13, "y is not finite"),
        (14, "not understood"),
    ]
    assert result.summary.notes["$god_ lines skipped"] == 1
    assert result.summary.notes["nodes without an initial position, set to their first destination"] == 1


def test_ns2_and_one_movement_are_the_same_after_writing_and_reading(tmp_path: Path):
    text = "node,time,x,y\n1,0,0,0\n1,10,100,0\n1,20,100,50.5\n1,30,100,50.5\n2,0,7.25,7\n2,30,-1,8\n"
    mobility = loaded(tmp_path, text, "positions").mobility()
    write_ns2(mobility, tmp_path / "m.tcl")
    again = load(tmp_path / "m.tcl", "ns2").mobility()
    assert again.contacts(60).start_us.tolist() == mobility.contacts(60).start_us.tolist()
    assert list(again.contacts(60).end_us) == pytest.approx(mobility.contacts(60).end_us.tolist(), abs=2)
    write_one_movement(mobility, tmp_path / "m.txt")
    assert load(tmp_path / "m.txt", "one").mobility().segments.x1.tolist() == mobility.segments.x1.tolist()


WALKERS = """0.0 create 1 0 0 0
0.5 setdest 1 10 0 0 1.0 10.5
5.5 setdest 1 5 20 0 2.0 15.5
20.0 destroy 1
20.0 destroy 1
19.5 create 1 0 0 0
21.0 create 1 3 3 0
22.0 create 1 3 3 0
23.0 setdest 2 1 1 0 1 30
24.0 wave 1
24.0 setdest 1 3 7 0 2.0
25.0 create 9 0 0 0
19.0 destroy 1
"""


def test_walkers_are_present_from_create_to_destroy(tmp_path: Path):
    result = loaded(tmp_path, WALKERS, "walkers")
    assert segments(result) == [
        ("1", 0, 0.0, 0.0, S // 2, 0.0, 0.0),
        ("1", S // 2, 0.0, 0.0, 5_500_000, 5.0, 0.0),
        ("1", 5_500_000, 5.0, 0.0, 15_500_000, 5.0, 20.0),
        ("1", 15_500_000, 5.0, 20.0, 20 * S, 5.0, 20.0),
        ("1", 21 * S, 3.0, 3.0, 24 * S, 3.0, 3.0),
        ("1", 24 * S, 3.0, 3.0, 26 * S, 3.0, 7.0),
        ("9", 25 * S, 0.0, 0.0, 26 * S, 0.0, 0.0),
    ]
    assert reasons(result) == [
        (5, "destroy of a node that is not there"),
        (6, "time out of order for this node"),
        (8, "create of a node that is there"),
        (9, "setdest of a node that is not there"),
        (10, "unknown event"),
        (13, "time out of order for this node"),
    ]
    assert result.summary.notes == {"people never destroyed, present until the trace ends": 2}


def test_gps_gaps_split_and_jumps_are_rejected(tmp_path: Path):
    lines = ["cab,unix_time,lat,lon,occupied"]
    lines += ["a,0,10.0,20.0,0"]  # a bad first fix: far from all that follow
    lines += [f"a,{60 * k},48.000{k},11.0,0" for k in range(1, 5)]
    lines += ["a,270,48.5,11.0,1", "a,300,48.0006,11.0,0"]
    lines += ["a,2000,48.001,11.0,0", "a,2060,48.0011,11.0,0", "a,9000,48.0,11.0,0"]
    lines += ["b,100,48.0,11.0,0", "b,40,48.0,11.0001,0", "b,70,48.0,11.0,0", "b,40,48.0,11.0,0"]
    lines += [
        "c,x,48,11,0",
        "c,1,91,11,0",
        "c,1,48",
        "d,2024-05-01T10:00:00,48.0,11.0,0",
        "d,1714557660,48.0,11.0,0",
    ]
    result = loaded(tmp_path, "\n".join(lines), "gps")
    assert reasons(result) == [
        (2, "more than 1,000 km from the data's centre"),
        (7, "jump faster than the speed limit"),
        (11, "single row of its node within the gap limit"),
        (14, "time out of order for this node"),
        (15, "same instant as the node's row before"),
        (16, "time is neither seconds nor a date"),
        (17, "latitude out of range"),
        (18, "too few fields"),
    ]
    assert [(row.node, row.t0_us // S, row.t1_us // S) for row in sorted(result.segments)] == [
        ("a", 60, 120),
        ("a", 120, 180),
        ("a", 180, 240),
        ("a", 240, 300),
        ("a", 2000, 2060),
        ("b", 40, 100),
        ("d", 1714557600, 1714557660),
    ]
    step = next(row for row in result.segments if row.t0_us == 60 * S)
    assert step.y1 - step.y0 == pytest.approx(11.12, abs=0.02)
    whole = loaded(tmp_path, "\n".join(lines), "gps", gap=10**15, max_speed=1e9)
    assert len(whole.rejects) == 6


def test_gps_columns_are_configurable(tmp_path: Path):
    text = "who;when\n"
    with pytest.raises(BadInput, match="no column for node"):
        loaded(tmp_path, text, "gps")
    text = "who,when,breite,länge\nx,0,1,1\nx,5,1,1\n"
    columns = "node=who,time=when,latitude=breite,longitude=länge"
    assert len(loaded(tmp_path, text, "gps", columns=columns).segments) == 1
    with pytest.raises(BadInput, match="no column 'wer'"):
        loaded(tmp_path, text, "gps", columns="node=wer")
    with pytest.raises(BadInput, match="no column 'nod'"):
        loaded(tmp_path, text, "gps", columns="nod=who")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("node,time,x,y\np,0,0,1\np,2,3,1\n", {}),
        ("x,y,t,id\n0,1,0,p\n3,1,2,p\n", {}),
        ("p 0 0 1\np 2 3 1\n", {}),
        ("# framerate: 10 fps\n# id frame x/cm y/cm z/cm\np 0 0 100 5\np 20 300 100 5\n", {}),
        ("p 0 0 1 5\np 20 3 1 5\n", {"framerate": 10.0}),
        ("0 p 0 0 1 0 0 0\n50 p 3 0 1 0 0 0\n", {}),
        ("0,0,0,p,1\n0,40,300,p,100\n", {"columns": "z,frame,x,id,y", "framerate": 20.0, "scale": 0.01}),
    ],
)
def test_positions_are_read_in_all_layouts(tmp_path: Path, text: str, options: dict[str, object]):
    result = loaded(tmp_path, text, "positions", **options)
    [row] = result.segments
    assert (row.node, row.t0_us, row.t1_us) == ("p", 0, 2 * S)
    assert (row.x0, row.x1, row.y1) == (0.0, 3.0, pytest.approx(1.0))


def test_positions_without_necessary_options_are_bad_input(tmp_path: Path):
    for text, expected_text in (
        ("1 2 3 4 5\n", "--framerate"),
        ("1 2 3\n", "--columns"),
        ("a,b,c,d\n1,2,3,4\n", "--columns"),
    ):
        with pytest.raises(BadInput, match=expected_text):
            loaded(tmp_path, text, "positions")
    with pytest.raises(BadInput, match="expected a frame rate"):
        loaded(tmp_path, "1 2 3 4 5\n", "positions", framerate=0.0)
    with pytest.raises(BadInput, match="not an option"):
        loaded(tmp_path, "1 2 3 4\n", "positions", window=5)


def test_one_reads_movement_and_messages(tmp_path: Path):
    result = loaded(
        tmp_path, "0 100 0 50 0 50\n0 a 1 2\n0 b 5 5\n10 a 3 4\n20 b 5 60\n5 b 1 1\n30 c x 1\n", "one"
    )
    assert segments(result) == [
        ("a", 0, 1.0, 2.0, 10 * S, 3.0, 4.0),
        ("b", 0, 5.0, 5.0, 20 * S, 5.0, 60.0),
    ]
    assert reasons(result) == [(6, "time out of order for this node"), (7, "x is not a number")]
    assert result.summary.notes == {"rows outside the bounds of the first line, kept": 1}
    result = loaded(tmp_path, "5 C M1 a b 1000\n6.5 C M2 b a 5 x\n7 C M3 a\n8 C M4 a b -5\n", "one")
    assert result.messages == [
        MessageRow("M1", "a", "b", 5 * S, 1000),
        MessageRow("M2", "b", "a", 6_500_000, 5),
    ]
    assert reasons(result) == [(3, "too few fields"), (4, "size out of range")]
    write_messages(result.messages, tmp_path / "again.txt")
    assert load(tmp_path / "again.txt", "one").messages == result.messages


FEED = {
    "calendar.txt": "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n"
    "WK,1,1,1,1,1,0,0,20240101,20240107\nWE,0,0,0,0,0,1,1,20240101,20240107\nbad,1,1,1,1,1,1,1,2024,2025\n",
    "calendar_dates.txt": "service_id,date,exception_type\nWE,20240103,1\nWK,20240104,2\nWK,20240105,9\n",
    "trips.txt": "route_id,service_id,trip_id,block_id,shape_id\nr,WK,t1,B,s\nr,WK,t2,B,\nr,WK,t3,,s\n"
    "r,WE,t4,,\nr,WK,t1,B,s\nr,WK,t5,B,\nr,WK,t6,,\n",
    "stops.txt": "stop_id,stop_name,stop_lat,stop_lon\n1,One,48.0,11.0\n2,Two,48.0,11.01\n3,Three,48.0,11.02\n"
    "4,Lost,48.0,48.0\n5,Broken,x,11.0\n",
    "stop_times.txt": "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
    "t1, 8:10:00, 8:10:00,3,9\nt1, 8:00:00, 8:01:00,1,1\nt1,8:05:00,8:05:00,2,5\n"
    "t2,8:20:00,8:20:00,3,1\nt2,,,2,2\nt2,8:24:00,8:24:00,4,3\nt2,8:30:00,8:30:00,1,4\n"
    "t3,23:50:00,23:50:00,1,1\nt3,24:10:00,24:10:00,3,2\nt4,9:00:00,9:00:00,1,1\nt9,9:00:00,9:00:00,1,1\n"
    "t5,8:25:00,8:25:00,1,1\nt5,8:40:00,8:40:00,2,2\nt6,9:00:00,9:00:00,1,1\nt6,8:00:00,8:00:00,2,2\n"
    "t3,24:10:00,24:00:00,3,3\nt3,25:61:00,25:10:00,3,3\nt3,24:30:00,24:30:00,77,4\n",
    "shapes.txt": "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence\n"
    "s,48.0,11.02,3\ns,48.0,11.0,1\ns,48.001,11.01,2\nother,48,11,1\ns,48,11,x\n",
}


def feed(folder: Path, **changed: str | None) -> Path:
    path = folder / "feed.zip"
    tables = {**FEED, **{f"{name}.txt": text for name, text in changed.items()}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in tables.items():
            if text is not None:
                archive.writestr(name, text)
    return path


def test_gtfs_a_small_feed_with_all_kinds_of_errors(tmp_path: Path):
    result = load(feed(tmp_path), "gtfs", Options(date="2024-01-02"))
    assert result.summary.rows_read == result.summary.rows_kept + len(result.rejects)
    assert sorted((r.file.rsplit("/", 1)[-1], r.line, r.reason.split(":")[0]) for r in result.rejects) == [
        ("calendar.txt", 4, "not a date"),
        ("calendar_dates.txt", 4, "neither added nor removed"),
        ("shapes.txt", 6, "shape_pt_sequence is not a number"),
        ("stop_times.txt", 12, "no such trip"),
        ("stop_times.txt", 13, "call of a rejected trip"),
        ("stop_times.txt", 14, "call of a rejected trip"),
        ("stop_times.txt", 15, "call of a rejected trip"),
        ("stop_times.txt", 16, "call of a rejected trip"),
        ("stop_times.txt", 17, "departs before it arrives"),
        ("stop_times.txt", 18, "not a time"),
        ("stop_times.txt", 19, "no such stop"),
        ("stops.txt", 5, "stop far outside the feed"),
        ("stops.txt", 6, "latitude is not a number"),
        ("trips.txt", 6, "a second trip with this id"),
        ("trips.txt", 7, "overlaps another trip of its block"),
        ("trips.txt", 8, "times of the trip go back"),
    ]
    assert result.summary.facts["trips"] == "3"
    bus = [row for row in sorted(result.segments) if row.node == "B"]
    assert (bus[0].t0_us, bus[-1].t1_us) == (8 * HOUR, 8 * HOUR + 30 * MINUTE)
    assert all(p.t1_us == q.t0_us for p, q in pairwise(bus)), "layovers keep it present"
    assert bus[0].t1_us == 8 * HOUR + MINUTE
    assert max(row.y1 for row in bus) == pytest.approx(111.2, abs=0.5), "it follows the shape's bend"
    night = [row for row in sorted(result.segments) if row.node == "t3"]
    assert night[-1].t1_us == 24 * HOUR + 10 * MINUTE


def test_gtfs_a_departure_at_the_instant_of_the_next_arrival_is_moved_to_its_arrival(tmp_path: Path):
    times = (
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
        "t1,8:00:00,8:00:00,1,1\nt1,8:05:00,8:06:00,2,2\nt1,8:06:00,8:06:00,3,3\n"
    )
    result = load(feed(tmp_path, stop_times=times, shapes=None), "gtfs", Options(date="2024-01-02"))
    spans = [(row.t0_us // S, row.t1_us // S) for row in result.segments]
    assert spans == [(8 * 3600, 8 * 3600 + 300), (8 * 3600 + 300, 8 * 3600 + 360)]


def test_gtfs_a_first_call_at_the_instant_of_the_next_is_no_jump(tmp_path: Path):
    times = (
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
        "t1,8:00:00,8:00:00,1,1\nt1,8:00:00,8:05:00,2,2\nt1,8:10:00,8:10:00,3,3\n"
    )
    result = load(feed(tmp_path, stop_times=times, shapes=None), "gtfs", Options(date="2024-01-02"))
    spans = [(row.t0_us // S, row.t1_us // S) for row in result.segments]
    assert spans == [(8 * 3600, 8 * 3600 + 300), (8 * 3600 + 300, 8 * 3600 + 600)]
    write_ns2(result.mobility(), tmp_path / "written.ns2")
    assert (tmp_path / "written.ns2").read_text().count("setdest") == 1


def test_walkers_with_negative_times_are_present_until_the_trace_ends(tmp_path: Path):
    result = loaded(tmp_path, "-10 create a 0 0 0\n-8 create b 1 1 0\n-5 destroy b\n", "walkers")
    assert sorted((row.node, row.t0_us // S, row.t1_us // S) for row in result.segments) == [
        ("a", -10, -5),
        ("b", -8, -5),
    ]


def test_gtfs_the_service_day_is_the_requested_or_the_busiest(tmp_path: Path):
    path = feed(tmp_path)
    assert load(path, "gtfs").summary.facts["service day"] == "2024-01-03", "WK and WE both run on that day"
    with pytest.raises(BadInput, match=r"no trips on 2024-01-04 \(the feed covers 2024-01-01 to 2024-01-07\)"):
        load(path, "gtfs", Options(date="2024-01-04"))
    with pytest.raises(BadInput, match="not a date"):
        load(path, "gtfs", Options(date="next monday"))


CALENDAR = "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n"


@pytest.mark.parametrize(
    ("calendar", "exceptions", "chosen"),
    [
        ("none,1,1,1,1,1,1,1,19700101,19700101\nWK,1,1,1,1,1,0,0,20240101,20240107\n", "", "2024-01-01"),
        ("WE,0,0,0,1,0,0,0,19700101,19700101\nWK,0,1,0,0,0,0,0,20240101,20240107\n", "", "2024-01-02"),
        ("WE,1,1,1,1,1,1,1,19700101,99991231\nWK,0,0,0,0,1,0,0,20240101,20240107\n", "", "2024-01-05"),
        ("WK,1,0,0,0,0,0,0,20240101,20990101\n", "WK,20240101,2\nWK,19700101,2\n", "2024-01-08"),
        ("WK,1,0,0,0,0,0,0,20240101,20990101\n", "WE,20980304,1\n", "2024-01-01"),
        ("WK,0,0,1,0,0,0,0,20240101,20990101\n", "WE,20980305,1\nWK,20980305,1\n", "2098-03-05"),
        ("WK,1,1,1,1,1,1,1,20240107,20240101\nWE,0,0,0,0,0,0,1,00010101,00010107\n", "", "0001-01-07"),
    ],
)
def test_gtfs_the_busiest_day_of_a_feed_that_covers_centuries(
    tmp_path: Path, calendar: str, exceptions: str, chosen: str
):
    tables = {"calendar": CALENDAR + calendar}
    tables["calendar_dates"] = "service_id,date,exception_type\n" + exceptions
    path = feed(tmp_path, **tables, stop_times=FEED["stop_times.txt"] + "t4,9:10:00,9:10:00,2,2\n")
    assert load(path, "gtfs").summary.facts["service day"] == chosen


def test_gtfs_the_busiest_day_is_the_first_of_all_days_with_the_most_trips(tmp_path: Path):
    random = Random(7)
    for _ in range(60):
        days = [date(2024, 1, 1) + timedelta(days=k) for k in range(40)]
        calendar = "".join(
            f"{name},{','.join(random.choice('01') for _ in range(7))},"
            f"{random.choice(days):%Y%m%d},{random.choice(days):%Y%m%d}\n"
            for name in "abc"
        )
        exceptions = "".join(
            f"{random.choice('abc')},{random.choice(days):%Y%m%d},{random.choice('12')}\n"
            for _ in range(random.randrange(30))
        )
        tables = {"calendar": CALENDAR + calendar}
        tables["calendar_dates"] = "service_id,date,exception_type\n" + exceptions
        services = Services(Feed(feed(tmp_path, **tables)), Summary("", ""))
        trips = Counter(a=3, b=2, c=2)
        counted = {day: sum(trips[service] for service in services.on(day)) for day in days}
        most = max(counted.values())
        assert services.busiest(trips) == (next(d for d in days if counted[d] == most) if most else None)


def test_gtfs_in_a_folder_and_in_a_folder_inside_the_zip(tmp_path: Path):
    folder = tmp_path / "feed"
    folder.mkdir()
    for name, text in FEED.items():
        (folder / name).write_text(text)
    nested = tmp_path / "nested.zip"
    with zipfile.ZipFile(nested, "w") as archive:
        for name, text in FEED.items():
            archive.writestr(f"google/{name}", text)
    expected = segments(load(feed(tmp_path), "gtfs", Options(date="2024-01-02")))
    assert segments(load(folder, "gtfs", Options(date="2024-01-02"))) == expected
    assert segments(load(nested, "gtfs", Options(date="2024-01-02"))) == expected


def test_gtfs_distant_stops_and_frequencies(tmp_path: Path):
    stops = (
        "stop_id,stop_name,stop_lat,stop_lon\n1,Munich,48.1,11.6\n2,Salzburg,47.8,13.0\n3,Vienna,48.2,16.4\n"
    )
    path = feed(
        tmp_path, stops=stops, frequencies="trip_id,start_time,end_time,headway_secs\nt1,8:00:00,9:00:00,600\n"
    )
    result = load(path, "gtfs", Options(date="2024-01-02"))
    assert not any("far outside" in reject.reason for reject in result.rejects)
    assert any("frequencies.txt" in note for note in result.summary.notes)


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in FEED.items():
            archive.writestr(
                name, text if name != "stop_times.txt" else text + ("t9," + "1" * 9996 + "\n") * 3000
            )
    return out.getvalue()


@pytest.mark.parametrize(
    ("changed", "expected_text"),
    [
        ({"trips": None}, "no trips.txt"),
        ({"stops": None}, "no stops.txt"),
        ({"calendar": None, "calendar_dates": None}, "neither calendar.txt"),
        ({"stops": "stop_id,stop_lat\n1,2\n"}, "no column stop_lon"),
        ({"stops": "stop_id,stop_lat,stop_lon\n"}, "no usable stop"),
        ({"stops": ""}, "no usable stop"),
        ({"trips": "trip_id,service_id\n"}, "no trips on"),
        ({"stop_times": "\0\0\0"}, "binary"),
    ],
)
def test_gtfs_missing_tables_and_columns_are_bad_input(
    tmp_path: Path, changed: dict[str, str | None], expected_text: str
):
    with pytest.raises(BadInput, match=expected_text):
        load(feed(tmp_path, **changed), "gtfs", Options(date="2024-01-02"))


def test_gtfs_hostile_archives_are_bad_input(tmp_path: Path):
    path = tmp_path / "bomb.zip"
    path.write_bytes(bomb())
    with pytest.raises(BadInput, match="fold"):
        load(path, "gtfs", Options(date="2024-01-02"))
    good = feed(tmp_path).read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(BadInput, match="not a zip"):
        load(path, "gtfs")
    spoilt = bytearray(good)
    spoilt[60:90] = bytes(30)
    path.write_bytes(bytes(spoilt))
    with pytest.raises(BadInput):
        load(path, "gtfs")
    with pytest.raises(BadInput, match="No such file"):
        load(tmp_path / "nowhere.zip", "gtfs")


@pytest.mark.parametrize(
    ("distances", "used"), [((0.0, 5.0, 9.0), True), ((0.0, None, 9.0), False), ((0.0, 9.0, 5.0), False)]
)
def test_gtfs_distances_of_a_shape_are_used_if_all_points_have_them_and_none_goes_back(
    distances: tuple[float | None, ...], used: bool
):
    points = [(float(number), 100.0 * number, 0.0, along) for number, along in enumerate(distances)]
    shape = _shape(points[::-1])
    assert shape is not None
    assert shape.xs.tolist() == [0.0, 100.0, 200.0]
    assert (None if shape.along is None else shape.along.tolist()) == (list(distances) if used else None)


def test_gtfs_a_stop_on_a_loop_is_placed_on_the_right_pass():
    """Out and back on one street: the same stop is called at twice, once in each direction."""
    import numpy as np

    shape = Shape(np.array([0.0, 1000.0, 1000.0, 0.0]), np.array([0.0, 0.0, 20.0, 20.0]), None)
    calls = [(0, 0.0, 0.0), (60, 500.0, 10.0), (120, 1000.0, 10.0), (180, 500.0, 10.0), (240, 0.0, 20.0)]
    anchors = [Anchor(t * S, t * S, x, y) for t, x, y in calls]
    assert shape.by_projection(anchors) == pytest.approx([0, 500, 1010, 1520, 2020], abs=11)
    legs, on_shape = trip_legs(anchors, shape)
    assert on_shape
    assert legs[0][0] == 0
    assert legs[-1][3] == 240 * S
    assert all(p[3:] == q[:3] for p, q in pairwise(legs)), "no jumps"


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"\x00\x01\xff\xfe",
        b"\x7fELF" + bytes(range(256)) * 10,
        gzip.compress(b"", mtime=0),
        b"\x1f\x8bnot really",
    ],
)
def test_empty_and_nonsense_files_are_bad_input_in_every_format(tmp_path: Path, kind: str, content: bytes):
    path = tmp_path / "nonsense"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        load(path, kind)
    assert "nonsense" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "gtfs"])
def test_a_file_of_another_format_is_bad_input(tmp_path: Path, kind: str):
    path = tmp_path / "poem.txt"
    path.write_text("Shall I compare thee to a summer's day?\nThou art more lovely and more temperate\n")
    with pytest.raises(BadInput, match="poem"):
        load(path, kind)


def test_batches_are_bounded(tmp_path: Path):
    path = tmp_path / "many.csv"
    path.write_text("".join(f"a,b{k},{k},{k + 1}\n" if k % 3 else "junk\n" for k in range(1000)))
    reading = Reading(path, "contacts")
    sizes = [len(b.contacts) + len(b.rejects) for b in reading.batches(64)]
    assert max(sizes) == 64
    assert sum(sizes) == 1000 == reading.summary.rows_read
    assert reading.summary.lines()[0] == "many.csv: 1,000 rows read = 666 kept + 334 rejected"


def test_too_many_nodes_are_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("precede.traces.records.MAX_NODES", 10)
    with pytest.raises(BadInput, match="more than 10 nodes"):
        loaded(tmp_path, "".join(f"{k},a{k},0,1\n" for k in range(50)), "contacts")


def test_an_unknown_format_is_bad_input():
    with pytest.raises(BadInput, match="no format 'csv'"):
        Reading("x", "csv")


def test_gtfs_stops_are_placed_forward_with_the_least_cost():
    assert _forward([[0.0, 5.0], [7.0]], [[5.0, 1.0], [0.0]]) == [5.0, 7.0]
    assert _forward([[0.0, 8.0], [7.0]], [[5.0, 1.0], [0.0]]) == [0.0, 7.0], "8 is behind 7"
    assert _forward([[8.0], [7.0]], [[1.0], [0.0]]) is None
