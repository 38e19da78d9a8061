"""Logs that cannot be read or contradict themselves: one line with file, row and cause, never a traceback."""

from __future__ import annotations

import gzip
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede import cli
from precede.core.errors import BadInput
from precede.witness.verify import verify
from tests.witness.every_way import verify_every_way
from tests.witness.histories import parse

HEADER = "node,step,kind,message_source,message_number\n"
GOOD = HEADER + "a,1,broadcast,a,1\nb,1,delivered,a,1\n"


@pytest.fixture
def complaint(tmp_path, capsys):
    """What `precede verify` says about a file with this content, after the file's name."""

    def ask(content, name="log.csv", *options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        code = cli.main(["verify", str(path), *options])
        captured = capsys.readouterr()
        assert code == 2, captured.out
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        start = f"precede verify: {path}"
        assert captured.err.startswith(start)
        assert captured.err.endswith(" [E011]\n")
        return captured.err.removeprefix(start).removesuffix(" [E011]\n").strip()

    return ask


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        ("", ": is empty"),
        ("\n\n", ": is empty"),
        (HEADER, ": is empty (no rows)"),
        (HEADER + "a,one,broadcast,a,1\n", ", row 1 (line 2): step is not a whole number: 'one'"),
        (GOOD + "b,2.5,delivered,a,1\n", ", row 3 (line 4): step is not a whole number: '2.5'"),
        (GOOD + "b,,delivered,a,1\n", ", row 3 (line 4): step is missing"),
        (GOOD + ",2,delivered,a,1\n", ", row 3 (line 4): node is missing"),
        (GOOD + "b,2,,a,1\n", ", row 3 (line 4): kind is missing"),
        (GOOD + "b,2,delivered,,1\n", ", row 3 (line 4): message_source is missing"),
        (GOOD + "b,2,delivered,a,\n", ", row 3 (line 4): message_number is missing"),
        (GOOD + "b,2,delivered,a,x\n", ", row 3 (line 4): message_number is not a whole number: 'x'"),
        (GOOD + f"b,2,delivered,a,{1 << 70}\n", f", row 3 (line 4): message_number is too large: '{1 << 70}'"),
        (GOOD + "b,2,delivered\nb,3,delivered,a,1\n", ", row 3 (line 4): 3 cells, but the header has 5"),
        (GOOD + "b,2,delivered,a,1,9\n", ", row 3 (line 4): 6 cells, but the header has 5"),
        (GOOD + "b,1,delivered,a,1\n", ", row 3 (line 4): step 1 of node b occurs twice (first in row 2)"),
        (GOOD + "a,2,broadcast,a,1\n", ", row 3 (line 4): message a:1 is broadcast again (first in row 1)"),
        (GOOD + "b,2,broadcast,a,2\n", ", row 3 (line 4): node b broadcasts a message whose source is a"),
        (GOOD + '\n\n"b",2,delivered,a,x\n', ", row 3 (line 6): message_number is not a whole number: 'x'"),
        (
            GOOD + "a,2,broadcast,a,7\na,3,broadcast,a,5\n",
            ", row 4 (line 5): node a broadcasts number 5 after 7, but numbers ascend with step "
            "(if they are only names: --columns message=…)",
        ),
        ("node,step,node\n", ": column 'node' occurs twice"),
        (
            "who,step,kind,message\na,1,broadcast,x\n",
            ": no column 'node' (there are: who, step, kind, message; name it with --columns node=…)",
        ),
        (
            "node,step,kind\na,1,broadcast\n",
            ": no column names the message of a row: message_source and message_number, or one id in "
            "message (there are: node, step, kind; name it with --columns message=…)",
        ),
        (b"node,step,kind,message\n\xff\xfe,1,broadcast,x\n", ", line 1: not UTF-8 text (invalid start byte)"),
        (b"\x00\x01\x02\x03", ": neither CSV, JSON lines nor Parquet"),
        ("[1, 2]", ": a JSON array; write one object per line (JSON lines)"),
    ],
)
def test_a_bad_csv_file_gives_an_error_of_one_line(complaint, content, expected_text):
    assert complaint(content) == expected_text


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        ('{"node": "a"\n{"node": "b"}\n', ", row 1 (line 1): "),
        ('{"node":"a","step":1,"kind":"broadcast","message":"x"}\n7\n', ", row 2 (line 2): Expected `object`"),
        (
            '{"node":"a","step":true,"kind":"broadcast","message":"x"}\n',
            ", row 1: step is not a whole number: True",
        ),
        ('{"node":{},"step":1,"kind":"broadcast","message":"x"}\n', ", row 1: node is not a name: {}"),
        ('{"node":"a","step":1,"kind":"broadcast"}\n', ": no column names the message of a row"),
        ('{"node":"a","step":1,"kind":"broadcast","message":null}\n', ", row 1: message is missing"),
        (
            '{"node":"a","step":1,"kind":"broadcast","message":"x","destinations":4}\n',
            ", row 1: destinations are not a list: 4",
        ),
    ],
)
def test_bad_json_lines_give_an_error_of_one_line(complaint, content, expected_text):
    assert complaint(content, "log.jsonl").startswith(expected_text)


def test_missing_and_unreadable_files_are_bad_input(tmp_path, capsys):
    assert cli.main(["verify", str(tmp_path / "nothing.csv")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert cli.main(["verify", str(tmp_path)]) == 2
    assert "no events.parquet" in capsys.readouterr().err
    locked = tmp_path / "locked.csv"
    locked.write_text(GOOD)
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        assert cli.main(["verify", str(locked)]) == 2
        assert "Permission denied" in capsys.readouterr().err


def test_damaged_parquet_files_are_bad_input(tmp_path, complaint):
    rows = parse("a: +1 a1\nb: a1").table() * 3000
    path = tmp_path / "whole.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    whole = path.read_bytes()
    assert complaint(whole[: len(whole) // 2], "half.parquet").startswith(": not a readable Parquet file:")
    assert complaint(b"", "empty.parquet").startswith(": not a Parquet file")
    assert complaint(GOOD, "text.parquet").startswith(": not a Parquet file")
    damaged = bytearray(whole)
    damaged[8:200] = os.urandom(192)
    assert "cannot be read" in complaint(bytes(damaged), "damaged.parquet")
    pq.write_table(pa.Table.from_pylist(rows).slice(0, 0), path)
    assert complaint(path.read_bytes(), "none.parquet") == ": is empty (no rows)"


def test_damaged_gzip_files_are_bad_input(complaint):
    packed = bytearray(gzip.compress(os.urandom(5000).hex().encode()))
    packed[40:60] = os.urandom(20)
    assert "gzip" in complaint(bytes(packed), "log.csv.gz")


@pytest.mark.parametrize(
    ("options", "expected_text"),
    [
        (
            ["--order", "casual"],
            "order: 'casual' is none of fifo, causal, multicast, delta, total, display"
            " (did you mean 'causal'?)",
        ),
        (["--duplicates", "maybe"], "duplicates: 'maybe' is none of forbid, allow"),
        (["--steps", "x"], "steps: 'x' is none of counted, ordered"),
        (["--columns", "nod=a"], "--columns: unknown name 'nod' (did you mean 'node'?)"),
        (["--columns", "node"], "--columns: expected name=column, got 'node'"),
        (["--columns", "node=a,node=b"], "--columns: 'node' occurs twice"),
        (["--columns", "kind=:sent"], "--columns: kind=:sent is none of kind=:broadcast, kind=:delivered"),
        (["--kinds", "delivered=broadcast"], "--kinds: 'broadcast' cannot be both a broadcast and a delivery"),
    ],
)
def test_bad_options_give_an_error_of_one_line(tmp_path, capsys, options, expected_text):
    log = tmp_path / "log.csv"
    log.write_text(GOOD)
    assert cli.main(["verify", str(log), *options]) == 2
    assert capsys.readouterr().err == f"precede verify: {expected_text} [E011]\n"


def test_options_that_name_no_column_are_bad_input(complaint):
    assert complaint(GOOD, "log.csv", "--columns", "node=nodes") == (
        ": no column 'nodes' for 'node' (did you mean 'node'?)"
    )
    assert complaint(GOOD, "log.csv", "--by", "knd") == ": no column 'knd' to split by (did you mean 'kind'?)"


CONTRADICTIONS = {
    "step twice": (1, {"node": "b", "step": 1, "kind": "delivered"}),
    "broadcast twice": (3, {"node": "a", "step": 9, "kind": "broadcast"}),
    "foreign source": (1, {"node": "b", "step": 2, "kind": "broadcast"}),
    "no number": (1, {"node": "b", "step": 2, "kind": "delivered", "message_number": None}),
    "no source": (1, {"node": "b", "step": 2, "kind": "delivered", "message_source": None}),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_large_logs_give_the_same_error_messages(name):
    at, wrong = CONTRADICTIONS[name]
    rows = [
        {"node": "a", "step": 1, "kind": "broadcast", "message_source": "a", "message_number": 1},
        {"node": "b", "step": 1, "kind": "delivered", "message_source": "a", "message_number": 1},
    ]
    rows.insert(at, {"message_source": "a", "message_number": 1, **wrong})
    expected_text = set()
    for source, engine in ((rows, "plain"), (rows, "numba"), (pa.Table.from_pylist(rows), "numba")):
        with pytest.raises(BadInput) as caught:
            verify(source, "fifo", engine=engine)
        expected_text.add(str(caught.value).removeprefix("the log").removeprefix("the table"))
    assert len(expected_text) == 1, expected_text
    assert "row" in expected_text.pop()


def test_input_that_is_no_log_is_bad_input():
    for source in (7, b"node", {"node": "a"}, [("a", 1)]):
        with pytest.raises(BadInput):
            verify(source)
    with pytest.raises(BadInput, match="is empty"):
        verify([])
    assert verify_every_way(parse("a: +1 a1").table(), "causal").holds


def test_a_table_without_rows_is_empty():
    with pytest.raises(BadInput, match=r"is empty \(no rows\)"):
        verify(pa.table({"node": pa.array([], pa.string()), "step": [], "kind": []}))
