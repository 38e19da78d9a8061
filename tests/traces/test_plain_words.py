"""Formats whose words are separated by blanks: parsed by column or line by line, they give the same rows."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from precede.core.errors import BadInput
from precede.core.instants import MINUTE
from precede.files import lines as line_files
from precede.files import rejects
from precede.files.lines import NumberedLines
from precede.traces.contacts import read_contacts
from precede.traces.formats import plain_columns
from precede.traces.formats.ns2 import read_ns2
from precede.traces.formats.one import read_one_events
from precede.traces.formats.one_movement import read_one
from precede.traces.formats.positions import read_positions
from precede.traces.formats.tij import read_tij
from precede.traces.records import Row, Summary, batches

Reader = Callable[[Any, Summary], Iterator[Row]]
READERS: dict[str, Reader] = {
    "ns2": read_ns2,
    "ns2 motion": lambda lines, summary: read_ns2(lines, summary, "motion"),
    "one": read_one,
    "one of a scenario": lambda lines, summary: read_one_events(lines, summary, lines),
    "movement": read_one,
    "positions": lambda lines, summary: read_positions(lines, summary, gap=MINUTE, max_speed=30.0),
    "tij": read_tij,
}
LINES = {
    "ns2": '$ns_ at {t} "$node_({n}) setdest {x} {x} {x}"',
    "ns2 motion": '$ns_ at {t} "$node_({n}) setdest {x} {x} {x}"',
    "one": "{t} CONN {n} {n} {w}",
    "one of a scenario": "{t} conn {n} {n} {w} wlan0",
    "movement": "{t} {n} {x} {x}",
    "positions": "0 {n} {t} 0 {x} {x}",
    "tij": "{t} {n} {n} MED",
}
FIRST_LINES = {"movement": "0 100 0 50 0 50", "positions": "one node time other x y"}
ODD_LINES = [
    *("", " ", "# note", " # note", "\x0c", "\0", "a", "1 2", "1 2 3 4 5 6 7 8", "\v1 a b", "é", '"', "$"),
    *("1 C m1 a b 10", "1 CONN a b UP", "1 CONN a b sideways", "1 CONN a b", "1 XYZ a b up", "20 CONN b"),
    *("$node_(1) set X_ 3.5", "$node_(9) set Y_ 1", "$node_(c) set Z_ 0 ;", "$god_ set-dist 1 2 3", " $god_ x"),
    *('$ns_ at 1 "$god_ set-dist 1 2 3"', '$ns_ at 9 "$node_($god_) setdest 1 2 3"', "$ns_ at 3"),
    *('$ns at 1 "$node_(1) setdest 1 2 3"', '$ns_ at 1 "$node_(1) setdest 1 2 3";', "$node_(1) setdest 1 2 3"),
    *(
        '$ns_ at 1 "$node_(1) setdest 1 2 3',
        '$ns_ at 1 "$node_(1) setdest 1 2 3""',
        '$ns_ at 1 "$node_(1) x 1 2 3"',
    ),
]
ODD_NUMBERS = [
    "-1",
    "+5",
    "1_0",
    "0x1",
    "nan",
    "inf",
    "-inf",
    "1e3",
    "1e400",
    "1e-400",
    "1.",
    ".5",
    "-0",
    "007",
]
ODD_NUMBERS += ["9999999999999", "2e9", "NA", "", "٣", "1d2", '5"', "5\r"]
ODD_NAMES = [
    "b\vc",
    "",
    "é",
    '"a"',
    "#a",
    "x" * 201,
    "NA",
    "null",
    "CONN",
    "conn",
    "7.0",
    "1e0",
    "007",
    "a\x7f",
    "(a",
    "$god_",
]
ODD_BLANKS = ["  ", "\t", " \t", "\t\t", "\v", "\x1c", "\xa0", "\r", ""]


def read(kind: str, lines: Any) -> tuple[list[Row], Summary, str]:
    """The rows and rejects of a file, its summary, and the error with which the reader ended."""
    summary = Summary(file="f", format=kind)
    rows: list[Row] = []
    try:
        for row in READERS[kind](lines, summary):
            rows.append(row)
    except BadInput as error:
        return rows, summary, str(error)
    return rows, summary, ""


@some.composite
def files(draw: Any) -> tuple[str, bytes]:
    """A file, most of which is regular, and mostly in order of time: a few odd words, blanks and lines."""
    kind = draw(some.sampled_from(sorted(LINES)))
    oddness = draw(some.sampled_from([0, 0, 0, 1, 6]))
    blank = draw(some.sampled_from([" ", "\t"]))
    least_step = draw(some.sampled_from([0, 1, 1, -1]))
    nodes = some.sampled_from([*"abc"[: draw(some.integers(1, 3))], "1", "2", "1.0"])
    time = 0

    def is_odd() -> bool:
        return bool(draw(some.integers(0, 99)) < oddness)

    def word(usual: Any, odd: list[str]) -> str:
        return str(draw(some.sampled_from(odd) if is_odd() else usual))

    lines = [FIRST_LINES[kind].replace(" ", blank)] if kind in FIRST_LINES else []
    for _ in range(draw(some.integers(0, 40))):
        if is_odd():
            lines.append(draw(some.sampled_from(ODD_LINES)))
        time += 20 * draw(some.integers(least_step, 2))
        line = LINES[kind].replace("{t}", word(some.just(str(time)), ODD_NUMBERS))
        while "{n}" in line:
            line = line.replace("{n}", word(nodes, ODD_NAMES), 1)
        while "{x}" in line:
            line = line.replace("{x}", word(some.integers(0, 60).map(str), ODD_NUMBERS), 1)
        line = line.replace("{w}", word(some.sampled_from(["up", "down"]), ["UP", "Down", "sideways", ""]))
        line = (line if kind.startswith("ns2") else line.replace(" ", blank)) + ("" if not is_odd() else " ")
        if is_odd():
            line = line.replace(blank, draw(some.sampled_from(ODD_BLANKS)), 1)
        lines.append(line)
    end = draw(some.sampled_from(["\n", "\n", "\n", "\r\n"]))
    return kind, (end.join(lines) + draw(some.sampled_from([end, "", end + end]))).encode()


def both_ways(kind: str, data: bytes, size: int) -> list[Any]:
    """What is read of a file by column, in blocks of some size, and line by line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_files, "LEAST_PLAIN_BYTES", 1)
        patch.setattr(line_files, "PLAIN_BYTES", size)
        patch.setattr(line_files, "_BLOCK", 16)
        patch.setattr(plain_columns, "ROWS_BETWEEN", 2)
        by_column = read(kind, NumberedLines(io.BytesIO(data), "f"))
    return [by_column, read(kind, iter(NumberedLines(io.BytesIO(data), "f")))]


@settings(max_examples=600, deadline=None)
@given(files(), some.sampled_from([60, 200, 1000]))
@example(("tij", b"0 a"), 60)
@example(("tij", b"0 a\n0 a b\n20 a b\n40 a b\n60 a b\n"), 60)
def test_the_same_rows_and_rejects_as_line_by_line(file, size):
    by_column, by_line = both_ways(*file, size)
    assert by_column == by_line


@pytest.mark.parametrize("odd", [*ODD_LINES, *ODD_NUMBERS, *ODD_NAMES, *ODD_BLANKS])
@pytest.mark.parametrize("kind", sorted(LINES))
def test_one_odd_word_line_or_blank_in_a_regular_block(kind, odd):
    line = LINES[kind].replace("{w}", "up").replace("{x}", "5")
    regular = [
        line.replace("{t}", f"{20 * at}").replace("{n}", f"n{at}", 1).replace("{n}", "m") for at in range(9)
    ]
    words = regular[4].split(" ")
    for place in range(len(words) + 1):
        others = [odd] if place == len(words) else [" ".join([*words[:place], odd, *words[place + 1 :]])]
        others += [regular[4].replace(" ", odd, 1), regular[4] + odd, odd + regular[4]] * (place == 0)
        for other in others:
            rows = [FIRST_LINES.get(kind, regular[0]), *regular[:4], other, *regular[5:], ""]
            by_column, by_line = both_ways(kind, "\n".join(rows).encode(), 1000)
            assert by_column == by_line, other


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("tij", "0 a a MED"),
        ("one", "{at} CONN a a up"),
        ("movement", "5 n 1 1"),
        ("positions", "0 n 5 0 1 1"),
    ],
)
def test_rejects_are_compared_with_the_rows_before_them(kind: str, line: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rejects, "MAX_REJECTS", 20)
    lines = [FIRST_LINES[kind]] if kind in FIRST_LINES else []
    lines += [line.replace("{at}", str(at)) for at in range(40_000)]
    summary = Summary(file="f", format=kind)
    numbered = NumberedLines(io.BytesIO("\n".join([*lines, ""]).encode()), "f")
    with pytest.raises(BadInput) as caught:
        list(batches(READERS[kind](numbered, summary), summary, 39_000))
    read = 39_000 + summary.rows_kept
    assert str(caught.value).startswith(f"f: 39,000 of the first {read:,} rows are rejected")


@pytest.mark.parametrize("by_column", [True, False])
def test_after_many_rejects_a_regular_block_is_checked_row_by_row(
    by_column: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rejects, "MAX_REJECTS", 30)
    monkeypatch.setattr(line_files, "LEAST_PLAIN_BYTES", 1)
    monkeypatch.setattr(plain_columns, "ROWS_BETWEEN", 100)
    rows = ["n,0,1,1", *["n, 0,1,1,"] * 99, *(f"n,{at},1,1" for at in range(1, 60))]
    summary = Summary(file="f", format="positions")
    lines = NumberedLines(io.BytesIO("\n".join(["node,time,x,y", *rows, ""]).encode()), "f")
    with pytest.raises(BadInput, match="f: 99 of the first 106 rows are rejected"):
        list(batches(read_positions(lines if by_column else iter(lines), summary), summary, 105))


def test_one_bad_line_leaves_most_of_a_large_file_to_the_columns(monkeypatch: pytest.MonkeyPatch):
    parsed = []
    original = plain_columns.PlainBlocks._rows_in

    def rows_in(self: Any, first: int, data: bytes) -> Any:
        rows = original(self, first, data)
        parsed.extend(data.splitlines() if rows else ())
        return rows

    monkeypatch.setattr(plain_columns.PlainBlocks, "_rows_in", rows_in)
    lines = regular_file("tij")
    bad = [*lines[:20_000], "nonsense", *lines[20_000:]]
    summary = Summary(file="f", format="tij")
    list(READERS["tij"](NumberedLines(io.BytesIO("\n".join([*bad, ""]).encode()), "f"), summary))
    assert (summary.rows_read, summary.rows_rejected) == (40_001, 1)
    assert len(parsed) > 25_000


def test_frames_and_speeds_outside_the_range_of_numbers_give_no_warning():
    rows = [*(f"1 {frame} 0 0" for frame in range(80_000)), "1 1e308 0 0"]
    summary = Summary(file="f", format="positions")
    numbered = NumberedLines(io.BytesIO("\n".join([*rows, ""]).encode()), "f")
    columns = ["node", "frame", "x", "y"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = list(read_positions(numbered, summary, columns, framerate=0.1, gap=2**60, max_speed=1e308))
    assert kept[-1] == ("f", 80_001, "time is not finite: 'inf'")
    assert summary.rows_kept == 80_000


def regular_file(kind: str) -> list[str]:
    """The lines of a large file without rejects, in order of time."""
    lines = [FIRST_LINES[kind]] if kind in FIRST_LINES else []
    for row in range(40_000):
        line = LINES[kind].replace("{t}", f"{row}.25").replace("{n}", f"n{row % 50}", 1)
        line = line.replace("{n}", f"m{row % 50}").replace("{w}", ("up", "down")[row // 50 % 2])
        lines.append(line.replace("{x}", f"{row // 50 % 7}.5"))
    return lines


@pytest.mark.parametrize("kind", sorted(LINES))
def test_regular_files_are_parsed_by_column(kind, monkeypatch):
    parsed = []
    original = plain_columns.PlainBlocks._parsed
    monkeypatch.setattr(
        plain_columns.PlainBlocks, "_parsed", lambda self, block: parsed.append(block) or original(self, block)
    )
    data = "\n".join([*regular_file(kind), ""]).encode()
    kept, summary, error = read(kind, NumberedLines(io.BytesIO(data), "f"))
    assert (summary.rows_read, summary.rows_rejected, error) == (40_000, 0, "")
    assert kept
    assert sum(block.count(b"\n") for block in parsed) > 38_000
    assert (kept, summary, error) == read(kind, iter(NumberedLines(io.BytesIO(data), "f")))


@pytest.mark.parametrize("kind", sorted(LINES))
def test_a_file_whose_second_half_is_irregular(kind):
    lines = regular_file(kind)
    lines[20_000:] = [line.replace(" ", "  ", 1) for line in lines[20_000:]]
    lines[30_000:] = lines[:10_000]
    data = "\n".join([*lines, ""]).encode()
    assert read(kind, NumberedLines(io.BytesIO(data), "f")) == read(
        kind, iter(NumberedLines(io.BytesIO(data), "f"))
    )


def test_set_lines_between_the_moves_are_applied_in_their_order():
    lines = regular_file("ns2")
    for place in range(39_000, 0, -3_000):
        lines[place:place] = [f"$node_(new{place}) set X_ 5", f"$node_(n{place % 50}) set X_ 5"]
        lines[place + 50] = lines[place + 50].replace(f"n{(place + 48) % 50}", f"new{place}")
    data = "\n".join([*lines, ""]).encode()
    by_column = read("ns2", NumberedLines(io.BytesIO(data), "f"))
    assert by_column == read("ns2", iter(NumberedLines(io.BytesIO(data), "f")))
    assert by_column[1].reasons == {"set of a node that has moved": 13}


def test_contacts_of_the_one_in_a_scenario(tmp_path: Path):
    path = tmp_path / "contacts.one"
    path.write_text("\n".join([*regular_file("one"), "99999 CONN n1 n1 up", ""]))
    given_contacts = read_contacts(path)
    assert len(given_contacts.contacts) == 20_000
    assert [reject.line for reject in given_contacts.rejects] == [40_001]
