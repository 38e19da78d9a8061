"""CSV that is parsed by column: the same rows, rejects and counts as line by line, whatever the file holds."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from precede.core.errors import BadInput
from precede.files import lines as line_files
from precede.files.lines import NumberedLines
from precede.traces.contacts import read_contacts
from precede.traces.formats import contact_rows, plain_columns
from precede.traces.formats.contact_csv import read_contact_csv
from precede.traces.formats.contact_rows import Cleaning
from precede.traces.formats.gps import read_gps
from precede.traces.formats.one_movement import read_one
from precede.traces.formats.positions import read_positions
from precede.traces.records import Summary

ODD = [
    *("", " ", "-1", "+1", "1_0", "0x1", "nan", "inf", "1e3", "1e400", "1e-400", "1.", ".5", "-0", " 2", "2 ")
]
ODD += [
    "#",
    '"3"',
    "é",
    "x,y",
    "\t4",
    "\x0b4",
    "9999999999999",
    "null",
    "NA",
    "1d2",
    "2024-01-02T03:04:05",
    "4\r",
]
NAMES = [
    "a",
    "b",
    "c",
    "n1",
    "n01",
    "7",
    "7.0",
    "1e0",
    " a",
    "b ",
    "",
    "é",
    '"a"',
    "#a",
    "a b",
    "x" * 201,
    "NA",
]


def read(kind: str, lines: Callable[[], Any], cleaning: Cleaning) -> tuple[list[Any], Any, str]:
    """The rows and rejects of a file, its summary, and the error with which the reader ended."""
    summary = Summary(file="f", format=kind)
    rows: list[Any] = []

    @contextmanager
    def opened() -> Iterator[Any]:
        yield lines()

    readers = {
        "contacts": lambda: read_contact_csv(lines(), summary, None, cleaning),
        "positions": lambda: read_positions(lines(), summary, None, max_speed=30.0),
        "gps": lambda: read_gps(opened, summary),
    }
    try:
        for row in readers[kind]():
            rows.append(row)
    except BadInput as error:
        return rows, summary, str(error)
    return rows, summary, ""


HEADERS = {"contacts": "a,b,start,end", "positions": "node,time,x,y", "gps": "id,time,lat,lon"}
USUAL = some.integers(0, 60).map(str) | some.floats(0, 60).map(repr)


@some.composite
def files(draw: Any) -> tuple[str, bytes]:
    """A file, most of which is regular: a few odd fields, lines and widths."""
    kind = draw(some.sampled_from(sorted(HEADERS)))
    oddness = draw(some.sampled_from([0, 0, 1, 8]))

    def field(usual: Any, odd: list[str]) -> str:
        return str(draw(some.sampled_from(odd) if draw(some.integers(0, 99)) < oddness else usual))

    lines = [HEADERS[kind]] if kind == "gps" or draw(some.booleans()) else []
    name = some.sampled_from(["a", "b", "c", "n1", "n2", "7"])
    for _ in range(draw(some.integers(0, 25))):
        first, second = field(name, NAMES), field(name if kind == "contacts" else USUAL, NAMES)
        row = [first, second, field(USUAL, ODD), field(USUAL, ODD)]
        lines.append(",".join(row))
        if draw(some.integers(0, 99)) < oddness:
            lines.append(draw(some.sampled_from(["", "# note", "  ", "a,b,1", "a,b,1,2,3", "a;b", "\0"])))
    return kind, ("\n".join(lines) + draw(some.sampled_from(["\n", "", "\n\n"]))).encode()


@settings(max_examples=400, deadline=None)
@given(files(), some.sampled_from([Cleaning(), Cleaning("first"), Cleaning("union", 20_000_000)]))
def test_the_same_rows_and_rejects_as_line_by_line(file, cleaning):
    kind, data = file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_files, "LEAST_PLAIN_BYTES", 1)
        patch.setattr(line_files, "PLAIN_BYTES", 60)
        patch.setattr(line_files, "_BLOCK", 16)
        patch.setattr(plain_columns, "ROWS_BETWEEN", 3)
        by_column = read(kind, lambda: NumberedLines(io.BytesIO(data), "f"), cleaning)
    by_line = read(kind, lambda: iter(NumberedLines(io.BytesIO(data), "f")), cleaning)
    assert by_column == by_line


@pytest.mark.parametrize("kind", sorted(HEADERS))
def test_regular_files_are_parsed_by_column(kind, monkeypatch):
    parsed = []
    original = plain_columns.PlainBlocks._parsed
    monkeypatch.setattr(
        plain_columns.PlainBlocks, "_parsed", lambda self, block: parsed.append(block) or original(self, block)
    )
    monkeypatch.setattr(contact_rows.ContactRows, "add", one_row_only(contact_rows.ContactRows.add))
    second = "n{other}" if kind == "contacts" else "{at}"
    rows = [
        f"n{place % 50},"
        + second.format(other=place % 50 + 50, at=place)
        + f",{place % 80}.25,{place % 80 + 1}"
        for place in range(40_000)
    ]
    data = "\n".join([HEADERS[kind], *rows, ""]).encode()
    kept, summary, error = read(kind, lambda: NumberedLines(io.BytesIO(data), "f"), Cleaning())
    assert (summary.rows_read, error) == (40_000, "")
    assert kept
    assert sum(map(len, parsed)) > (1 if kind != "gps" else 2) * (len(data) - 40_000)


def one_row_only(add: Any) -> Any:
    """The first row after the header is read by itself; no other one."""
    calls = []

    def once(*arguments: Any) -> Any:
        calls.append(arguments)
        assert len(calls) == 1, "a regular row was read by itself"
        return add(*arguments)

    return once


def test_an_irregular_line_is_rejected_by_its_number_and_the_rest_is_parsed_by_column(monkeypatch):
    rows = [f"n{place % 50},m{place % 50},{place},{place + 0.5}" for place in range(60_000)]
    rows[30_000] = "n1,n1,3,4"
    data = "\n".join(["a,b,start,end", *rows, ""]).encode()
    added = []
    original = contact_rows.ContactRows.add
    monkeypatch.setattr(contact_rows.ContactRows, "add", lambda *all: added.append(all) or original(*all))
    kept, summary, _ = read("contacts", lambda: NumberedLines(io.BytesIO(data), "f"), Cleaning())
    assert summary.reasons == {"a node in contact with itself": 1}
    assert summary.first_places == {"a node in contact with itself": "line 30002"}
    assert kept[0].line == 30_002
    assert summary.rows_kept == 59_999
    assert len(added) < 25_000


def test_contacts_of_a_scenario(tmp_path):
    rows = [f"n{place % 7},m{place % 5},{place},{place + 0.5}" for place in range(5_000)]
    (tmp_path / "contacts.csv").write_text("\n".join(["a,b,start,end", *rows, ""]))
    (tmp_path / "nodes.csv").write_text(
        "node,enter,leave\nalone,0,1\n"
        + "".join(f"{name},0,4000\n" for name in [*(f"n{i}" for i in range(7)), *(f"m{i}" for i in range(5))])
    )
    everything = read_contacts(tmp_path / "contacts.csv")
    assert (len(everything.contacts), everything.contacts.nodes) == (5_000, 12)
    present = read_contacts(tmp_path / "contacts.csv", tmp_path / "nodes.csv").contacts
    assert present.names[0] == "alone"
    assert len(present) == 4_000
    assert next(present.rows()) == next(everything.contacts.rows())


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_a_carriage_return_at_the_end_of_a_read_stays_where_it_is(end: str, tmp_path: Path) -> None:
    rows = [f"n{k % 50},m{k % 50},{k},{k + 0.5}" for k in range(3000)]
    for padding in range(30):  # in some of them a read ends between the two characters
        path = tmp_path / "padded.csv"
        path.write_text(end.join(["a,b,start,end" + " " * padding, *rows, "n1,n1,3,4", ""]), newline="")
        given = read_contacts(path)
        assert [(one.line, given.summaries[0].rows_read) for one in given.rejects] == [(3002, 3001)]


def test_an_indented_comment_is_no_row(tmp_path: Path) -> None:
    rows = [f"x,n{k % 50},m{k % 50},{k},{k + 0.5}" for k in range(5000)]
    rows[2000] = " #off,n1,m1,9000,9001"
    path = tmp_path / "noted.csv"
    path.write_text("\n".join(["note,a,b,start,end", *rows, ""]))
    assert read_contacts(path).summaries[0].rows_read == 4999


def test_lines_of_an_irregular_block_are_decoded_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "\n".join(["0 100 0 50 0 50", *(f"{k}  n{k % 9} 1 1" for k in range(100_000)), ""]).encode()
    lines = NumberedLines(io.BytesIO(data), "f")
    decoded = []

    class Counting:
        original = lines._decoder
        getstate = original.getstate

        def decode(self, data: bytes, final: bool) -> str:
            decoded.append(len(data))
            return self.original.decode(data, final)

    monkeypatch.setattr(lines, "_decoder", Counting())
    assert sum(1 for _ in read_one(lines, Summary("f", "one"))) == 99_991
    assert sum(decoded) < 1.3 * len(data)
