"""Random and hostile files: a reader ends with a summary that adds up, or with one line of BadInput."""

from __future__ import annotations

import io
import math
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precede.core.errors import BadInput
from precede.files import lines as line_files
from precede.traces.contacts import read_contacts
from precede.traces.kernel import MAX_COORDINATE_M, MAX_INSTANT_US
from precede.traces.reading import FORMATS, Loaded, Options, load

NUMBERS = [
    "0",
    "1",
    "2",
    "10",
    "20",
    "3.5",
    "-1",
    "1e3",
    "1e308",
    "1e-320",
    "nan",
    "inf",
    "-0",
    "007",
    "1_0",
    "٣",
    "²",
]
WORDS = [
    "a",
    "b",
    "n1",
    "",
    '"',
    '"x,y"',
    "#",
    "\t",
    "\ufeff",
    "é",
    "�",
    "CONN",
    "C",
    "up",
    "down",
    "set",
    "x" * 300,
]
LINES = {
    "tij": ["{n} {w} {w}", "{n} a b", "{n} 1 2 X Y"],
    "contacts": ["{w},{w},{n},{n}", "a,b,{n},{n}", "a,b,start,end", "a,b,0,9,{w}"],
    "one": [
        "{n} CONN {w} {w} up",
        "{n} CONN a b up",
        "{n} CONN a b down",
        "{n} C {w} a b {n}",
        "{n} {n} {n} {n} 0 9",
    ],
    "ns2": [
        "$node_({n}) set X_ {n}",
        "$node_(1) set Y_ {n}",
        '$ns_ at {n} "$node_(1) setdest {n} {n} {n}"',
        '$ns_ at {n} "$node_({w}) setdest {n} {n} 1"',
        "$god_ {w}",
    ],
    "walkers": [
        "{n} create a {n} {n} 0",
        "{n} setdest a {n} {n} 0 {n} {n}",
        "{n} destroy a",
        "{n} setdest a 1 1 0 1",
    ],
    "gps": ["id,time,lat,lon", "a,{n},{n},{n}", "{w},{n},1,2", "a,2020-01-01T00:00:0{n},1,2"],
    "positions": [
        "node,time,x,y",
        "a,{n},{n},{n}",
        "{w} {n} {n} {n}",
        "{n} {n} {n} {n} 0 0 0 0",
        "# framerate: {n}",
    ],
}


@st.composite
def texts(draw: st.DrawFn, kind: str) -> str:
    lines = []
    for _ in range(draw(st.integers(0, 12))):
        line = draw(st.sampled_from(LINES[kind]) | st.text(max_size=30))
        while "{n}" in line:
            line = line.replace("{n}", draw(st.sampled_from(NUMBERS)), 1)
        while "{w}" in line:
            line = line.replace("{w}", draw(st.sampled_from(WORDS)), 1)
        lines.append(line)
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines)


def check_adds_up(loaded: Loaded) -> None:
    s = loaded.summary
    assert s.rows_read == s.rows_kept + s.rows_rejected
    assert s.rows_rejected == len(loaded.rejects) == sum(s.reasons.values())
    for row in loaded.segments:
        assert row.t0_us < row.t1_us
        assert all(math.isfinite(value) for value in (row.x0, row.y0, row.x1, row.y1))
    for contact in loaded.contacts:
        assert contact.start_us < contact.end_us
        assert contact.a != contact.b
    for reject in loaded.rejects:
        assert reject.line >= 1
        assert reject.reason.isprintable()
        assert len(reject.reason) < 300
    loaded.mobility()
    loaded.contact_list()
    small = all(abs(row.t1_us) <= MAX_INSTANT_US and abs(row.x1) <= MAX_COORDINATE_M for row in loaded.segments)
    assert small


def adds_up_or_is_refused(path: Path, kind: str, options: Options | None = None) -> str:
    """The error message if the file was rejected, else an empty text."""
    try:
        loaded = load(path, kind, options)
    except BadInput as error:
        message = str(error)
    else:
        check_adds_up(loaded)
        message = ""
    assert "\n" not in message
    return message


@pytest.mark.parametrize("kind", LINES)
def test_damaged_lines_of_every_format_are_counted_or_refused(kind: str, tmp_path: Path):
    path = tmp_path / "bent"

    @settings(max_examples=120)
    @given(texts(kind))
    def check(text: str) -> None:
        path.write_text(text, newline="", errors="surrogatepass")
        message = adds_up_or_is_refused(path, kind)
        assert not message or "bent" in message

    check()


@pytest.mark.parametrize("kind", FORMATS)
def test_random_bytes_are_counted_or_refused(kind: str, tmp_path: Path):
    path = tmp_path / "bytes"

    @settings(max_examples=60)
    @given(st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"PK\x03\x04", b"\xef\xbb\xbf"]))
    def check(content: bytes, magic: bytes) -> None:
        path.write_bytes(magic + content)
        adds_up_or_is_refused(path, kind)

    check()


TABLES = {
    "calendar": [
        "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date",
        "S,1,1,1,1,1,1,1,20240101,20240105",
        "S,1,1,1,1,1,1,1,{n},{n}",
    ],
    "trips": ["trip_id,service_id,block_id,shape_id", "t1,S,B,s", "t2,S,B,s", "t{n},S,{w},s", "{w},{w}"],
    "stops": ["stop_id,stop_lat,stop_lon", "1,48.0,11.0", "2,48.0,11.01", "3,{n},{n}", "{w},48,11"],
    "stop_times": [
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence,shape_dist_traveled",
        "t1,8:00:00,8:00:00,1,1,",
        "t1,8:05:00,8:06:00,2,2,",
        "t2,8:1{n}:00,8:20:00,{n},{n},{n}",
        "t2,9:00:00,9:00:00,2,9,1",
        "t2,8:10:00,8:10:00,1,1,0",
        "t1,,,{n},{n},",
        "t1,{n}:00:00,,3,3",
    ],
    "shapes": [
        "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence,shape_dist_traveled",
        "s,48,11,1,0",
        "s,48,11.01,2,1",
        "s,{n},{n},{n},{n}",
    ],
}


@st.composite
def feeds(draw: st.DrawFn) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, lines in TABLES.items():
            chosen = [lines[0], *lines[1:3], *draw(st.lists(st.sampled_from(lines), max_size=6))]
            if draw(st.integers(0, 15)) == 0:
                chosen = draw(st.lists(st.sampled_from(lines) | st.text(max_size=20), max_size=4))
            text = "\n".join(chosen)
            for mark, values in (("{n}", NUMBERS), ("{w}", WORDS)):
                while mark in text:
                    text = text.replace(mark, draw(st.sampled_from(values)), 1)
            archive.writestr(f"{name}.txt", text.encode("utf-8", "replace"))
    return out.getvalue()


@settings(max_examples=200)
@given(feeds())
def test_damaged_gtfs_feeds_are_counted_or_refused(content: bytes):
    path = Path(FOLDER[0]) / "feed.zip"
    path.write_bytes(content)
    adds_up_or_is_refused(path, "gtfs", Options(date="20240102"))


FOLDER: list[str] = []


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    FOLDER.append(str(tmp_path_factory.mktemp("feeds")))


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("tij", "{k} 1 2\n"),
        ("one", "{k} CONN 1 2 up\n"),
        ("gps", "a,{k},1,2\n"),
        ("positions", "a,{k},1,2\n"),
        ("walkers", "{k} setdest 1 5 5 0 1 1\n"),
        ("ns2", '$ns_ at {k} "$node_(1) setdest 5 5 1"\n'),
    ],
)
def test_memory_does_not_grow_with_the_file(
    kind: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from precede.traces.reading import Reading

    path = tmp_path / "long"
    heads = {"gps": "id,time,lat,lon\n", "walkers": "0 create 1 0 0 0\n", "one": "0 C M1 1 2 500\n"}
    head = heads.get(kind, "")

    def peak(rows: int) -> int:
        with path.open("w") as out:
            out.write(head)
            out.writelines(line.replace("{k}", str(k * 40)) for k in range(rows))
        tracemalloc.start()
        for _ in Reading(path, kind).batches(500):
            pass
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    monkeypatch.setattr(line_files, "_BLOCK", 1 << 11)  # so that the short file has several blocks too
    monkeypatch.setattr(line_files, "PLAIN_BYTES", 1 << 12)
    monkeypatch.setattr(line_files, "LEAST_PLAIN_BYTES", 1 << 10)
    peak(500)
    assert peak(20_000) < 1.5 * peak(2_000)


def test_read_contacts_handles_random_text(tmp_path: Path):
    path = tmp_path / "bent"

    @settings(max_examples=80)
    @given(texts("one") | texts("contacts"))
    def check(text: str) -> None:
        path.write_text(text, newline="", errors="surrogatepass")
        try:
            read = read_contacts(path)
        except BadInput:
            return
        assert sum(s.rows_rejected for s in read.summaries) == len(read.rejects)

    check()
