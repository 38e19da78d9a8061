"""stop_times.txt: calls of other days are found by column. The same rows and rejects as line by line."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from precede.core.errors import BadInput
from precede.files import lines as line_files
from precede.files.lines import MAX_LINE
from precede.files.rejects import Reject
from precede.traces.formats import gtfs_feed, plain_columns
from precede.traces.formats.gtfs_feed import Feed, Stop, Trip, read_calls
from precede.traces.records import Summary

HEADER = "trip_id,arrival_time,departure_time,stop_id,stop_sequence"
OTHERS = {"never1", "never2", "x" * 201}
STOPS = {"1": Stop(2, 0.0, 0.0), "2": Stop(3, 100.0, 0.0)}
USUAL_ROWS = ["today,8:00:00,8:00:00,1,1", "today,8:05:00,,2,2", "never1,9:00:00,9:00:00,2,1"]
ODD_ROWS = [
    *(
        "",
        " ",
        "# note",
        "never1",
        "never1,,,,,,",
        '"never1",8:00:00,8:00:00,1,1',
        " never1 ,8:00:00,8:00:00,1,1",
    ),
    *(
        "unknown,8:00:00,8:00:00,1,1",
        "today,8:61:00,8:00:00,1,1",
        "today,8:00:00,8:00:00,9,1",
        "never1,x,y,z,w",
    ),
    *("é,8:00:00,8:00:00,1,1", "today,8:00:00,7:00:00,1,1", f"{'x' * 201},,,,", ",,,,", "\0", "never2,\r,,,"),
]


def read(folder: Path, text: str) -> tuple[list[Reject], dict[str, Trip], Summary]:
    (folder / "stop_times.txt").write_text(text, newline="")
    summary = Summary(file="feed", format="gtfs")
    trips = {"today": Trip("today", 2, "bus", "")}
    rejects: list[Any] = []
    try:
        for reject in read_calls(Feed(folder), summary, trips, OTHERS, STOPS, frozenset()):
            rejects.append(reject)
    except BadInput as error:
        rejects.append(str(error))
    return rejects, trips, summary


def read_both_ways(folder: Path, rows: Sequence[str], end: str, header: str = HEADER) -> list[Any]:
    text = end.join([header, *rows, ""])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_files, "LEAST_PLAIN_BYTES", 1)
        patch.setattr(line_files, "PLAIN_BYTES", 200)
        patch.setattr(line_files, "_BLOCK", 16)
        patch.setattr(plain_columns, "ROWS_BETWEEN", 2)
        by_column = read(folder, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_files, "LEAST_PLAIN_BYTES", MAX_LINE)
        return [by_column, read(folder, text)]


@settings(max_examples=300, deadline=None)
@given(
    some.lists(some.sampled_from(4 * USUAL_ROWS + ODD_ROWS), max_size=60),
    some.sampled_from(["\n", "\r\n", "\r"]),
)
def test_the_same_rows_and_rejects_as_line_by_line(tmp_path_factory, rows, end):
    by_column, by_line = read_both_ways(tmp_path_factory.mktemp("feed"), rows, end)
    assert by_column == by_line


def test_of_two_columns_with_one_name_the_last_one_counts(tmp_path):
    rows = ["never1,1,today,8:00:00,1", "today,2,never2,8:00:00,2"] * 20
    header = "trip_id,stop_id,trip_id,arrival_time,stop_sequence"
    by_column, by_line = read_both_ways(tmp_path, rows, "\n", header)
    assert by_column == by_line
    assert len(by_column[1]["today"].calls) == 20


def test_a_bad_line_before_the_damage_of_an_archive_is_reported_first(tmp_path):
    rows = ["never1,8:00:00,8:00:00,1,1"] * 3_000
    rows[1_500] = "never1,\0,8:00:00,1,1"
    with zipfile.ZipFile(tmp_path / "feed.zip", "w") as archive:
        archive.writestr("stop_times.txt", "\n".join([HEADER, *rows, "never2,8:00:00,8:00:00,1,1", ""]))
    content = (tmp_path / "feed.zip").read_bytes()
    (tmp_path / "feed.zip").write_bytes(content.replace(b"never2", b"never3"))  # now its checksum is wrong
    with pytest.raises(BadInput, match=r"stop_times\.txt:1502: a binary file"):
        list(read_calls(Feed(tmp_path / "feed.zip"), Summary("feed", "gtfs"), {}, OTHERS, STOPS, frozenset()))


def test_rows_are_counted_as_read_before_they_are_rejected(tmp_path):
    rows = [f"{'never1' if place % 10 else 'unknown'},8:00:00,8:00:00,1,1" for place in range(40_000)]
    (tmp_path / "stop_times.txt").write_text("\n".join([HEADER, *rows, ""]))
    summary = Summary(file="feed", format="gtfs")
    rejects = read_calls(Feed(tmp_path), summary, {}, OTHERS, STOPS, frozenset())
    assert [summary.rows_read - 1 for _ in rejects] == list(range(0, 40_000, 10))
    assert summary.rows_read == 40_000


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_calls_of_other_days_are_not_read_one_by_one(tmp_path, monkeypatch, end):
    rows = [
        f"{'today' if place % 1000 == 500 else 'never1'},8:00:00,8:00:00,1,{place}" for place in range(40_000)
    ]
    parsed = []
    original = gtfs_feed.fields_of_csv
    monkeypatch.setattr(gtfs_feed, "fields_of_csv", lambda text: parsed.append(text) or original(text))
    rejects, trips, summary = read(tmp_path, end.join([HEADER, *rows, ""]))
    assert (rejects, summary.rows_read, summary.rows_kept) == ([], 40_000, 40_000)
    assert summary.notes == {"stop times of other days, not needed": 39_960}
    assert [call.line for call in trips["today"].calls] == [place + 2 for place in range(500, 40_000, 1000)]
    assert len(parsed) < 2_500
