"""Logs of other systems: each format gives the verdict of its rows, whatever its clocks say."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from precede import cli, verify
from precede.core.errors import BadInput
from precede.witness.foreign.log import ForeignVerdict, verify_foreign
from tests.hostile.files import MOBICLIQUE

Row = tuple[str, str, str, dict[str, int]]


def drawn(seed: int, nodes: int = 4, rows: int = 60) -> list[Row]:
    """Rows of nodes that deliver in any order, each with the vector clock that a careful system would log."""
    random = Random(seed)
    names = [f"n{place}" for place in range(nodes)]
    clocks: dict[str, dict[str, int]] = {name: {} for name in names}
    stamps: dict[str, dict[str, int]] = {}
    todo: dict[str, list[str]] = {name: [] for name in names}
    made = []
    while len(made) < rows:
        node = random.choice(names)
        clock = clocks[node]
        if todo[node] and random.random() < 0.7:
            message = todo[node].pop(random.choice([0, 0, 0, -1]))
            for name, count in stamps[message].items():
                clock[name] = max(count, clock.get(name, 0))
            kind = "delivered"
        else:
            message, kind = f"m{len(stamps)}", "broadcast"
        clock[node] = clock.get(node, 0) + 1
        if kind == "broadcast":
            stamps[message] = dict(clock)
            for name in names:
                todo[name] += [message] if name != node else []
        made.append((node, kind, message, dict(clock)))
    return made


def shiviz(rows: list[Row]) -> Iterator[str]:
    for node, kind, message, clock in rows:
        yield f"{kind} {message}\n{node} {json.dumps(clock)}"


def govector(rows: list[Row]) -> Iterator[str]:
    for node, kind, message, clock in rows:
        yield f"{node} {json.dumps(clock)}\n{kind} of {message}"


def json_lines(rows: list[Row]) -> Iterator[str]:
    for node, kind, message, clock in rows:
        yield json.dumps({"host": node, "event": kind, "msg": message, "vector_clock": clock})


def comma_separated(rows: list[Row]) -> Iterator[str]:
    yield "process;kind;message;vc"
    for node, kind, message, clock in rows:
        yield f"{node};{kind};{message};{' '.join(f'{name}:{count}' for name, count in clock.items())}"


WRITERS = {
    "shiviz": shiviz,
    "govector": govector,
    "jsonl-vector-clock": json_lines,
    "csv": comma_separated,
}


def read(path: Path, format: str, lines: Iterator[str], **options: str) -> ForeignVerdict:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return verify_foreign(str(path), format, **options)


def by_rows(rows: list[Row]) -> tuple[str, dict[str, int]]:
    log = [
        {"node": node, "step": step, "kind": kind, "message": message}
        for step, (node, kind, message, _) in enumerate(rows)
    ]
    verdict = verify(log, "causal", steps="ordered")
    return verdict.verdict, verdict.counts


@pytest.mark.parametrize("format", WRITERS)
def test_the_verdict_is_that_of_the_rows_and_the_clocks_agree(format: str, tmp_path: Path) -> None:
    violated = 0
    for seed in range(12):
        rows = drawn(seed)
        found = read(tmp_path / "log", format, WRITERS[format](rows))
        expected, counts = by_rows(rows)
        assert (found.verdict.verdict, found.verdict.counts) == (expected, counts)
        assert found.counts.rows_read == found.counts.rows_kept == len(rows)
        agreement = found.agreement
        assert agreement is not None
        assert agreement.agrees
        assert agreement.late_both == counts.get("causal", 0)
        assert agreement.rows == len(rows)
        assert agreement.pairs > 0
        violated += expected == "violated"
    assert violated > 3


def test_wrong_clocks_change_the_agreement_and_never_the_verdict(tmp_path: Path) -> None:
    random = Random(7)
    disagreeing = 0
    for seed in range(12):
        rows = drawn(seed)
        bent = [(n, k, m, {name: random.randint(0, 40) for name in clock}) for n, k, m, clock in rows]
        found = read(tmp_path / "log", "shiviz", shiviz(bent))
        assert (found.verdict.verdict, found.verdict.counts) == by_rows(rows)
        assert found.agreement is not None
        disagreeing += not found.agreement.agrees
    assert disagreeing == 12


def test_a_clock_that_missed_a_delivery_is_counted_as_fewer(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("a", "broadcast", "m1", {"a": 1}),
        ("b", "delivered", "m1", {"a": 1, "b": 1}),
        ("b", "broadcast", "m2", {"b": 2}),
        ("c", "delivered", "m2", {"b": 2, "c": 1}),
        ("c", "delivered", "m1", {"a": 1, "b": 2, "c": 2}),
    ]
    found = read(tmp_path / "log", "shiviz", shiviz(rows))
    assert found.verdict.verdict == "violated"
    agreement = found.agreement
    assert agreement is not None
    assert (agreement.pairs, agreement.more, agreement.fewer) == (2, 0, 1)
    assert (agreement.late_both, agreement.late_rows, agreement.late_clocks) == (0, 1, 0)
    assert "DISAGREE" in agreement.lines()[0]


@pytest.mark.parametrize("format", WRITERS)
def test_bad_lines_are_rejected_counted_and_make_an_order_that_is_kept_unknown(
    format: str, tmp_path: Path
) -> None:
    rows = [row for row in drawn(1) if row[1] == "broadcast"][:5]
    rows += [("z", "delivered", rows[0][2], {"z": 1})]
    lines = list(WRITERS[format](rows))
    assert read(tmp_path / "log", format, iter(lines)).verdict.verdict == "holds"
    lines.insert(3, "?? \ufffd nothing that is a row")
    found = read(tmp_path / "log", format, iter(lines))
    assert found.verdict.verdict == "unknown"
    assert "lines were rejected" in found.verdict.reasons[0]
    assert found.counts.rows_rejected >= 1
    assert found.counts.rows_read == found.counts.rows_kept + found.counts.rows_rejected
    assert sum(found.counts.reasons.values()) == found.counts.rows_rejected


def test_an_expression_of_the_user_reads_other_lines_and_that_of_a_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [
        f'{node} "{kind} {message}" {json.dumps(clock)}' for node, kind, message, clock in drawn(3, rows=20)
    ]
    own = r"(?<host>\w+) \"(?<kind>\w+) (?<message>\w+)\" (?<clock>\{.*\})"
    found = read(path, "shiviz", iter(lines), pattern=own)
    assert (found.verdict.verdict, found.verdict.counts) == by_rows(drawn(3, rows=20))
    with pytest.raises(BadInput, match="begins with an expression of its own"):
        read(path, "shiviz", iter([r"(?<event>(a+)+b)\n(?<host>\S*) (?<clock>{.*})", "", *lines]))
    for wrong, cause in ((r"(?<host>\w+)", "no group named 'clock'"), (r"(?<host>(", "--pattern")):
        with pytest.raises(BadInput, match=cause):
            verify_foreign(str(path), "shiviz", pattern=wrong)


def response(*events: tuple[str, int]) -> str:
    pairs = [
        {"kv": {"key": base64.b64encode(key.encode()).decode(), "mod_revision": revision}}
        for key, revision in events
    ]
    return json.dumps({"Header": {"revision": 9}, "Events": pairs, "Canceled": False})


def test_watchers_of_etcd_agree_or_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.json").write_text(response(("a", 2), ("b", 3)) + "\n" + response(("c", 4)) + "\n")
    gateway = {"result": {"header": {"revision": "1"}, "created": True}}
    (tmp_path / "two.json").write_text(json.dumps(gateway) + "\n" + response(("a", 2), ("c", 4)) + "\n")
    found = verify_foreign(str(tmp_path), "etcd-watch")
    assert (found.verdict.order, found.verdict.verdict, found.verdict.deliveries_checked) == (
        "total",
        "holds",
        5,
    )
    assert found.agreement is not None
    assert (found.agreement.rows, found.agreement.rows_in_order) == (5, 5)
    (tmp_path / "two.json").write_text(response(("c", 4), ("a", 2)) + "\n")
    assert cli.main(["verify", str(tmp_path), "--as", "etcd-watch"]) == 1
    said = capsys.readouterr().out
    assert "total order VIOLATED" in said
    assert "clocks DISAGREE with the rows; they decide nothing" in said
    assert "4 of 5 rows are in the order of their node's own clock" in said


TIED = "2;1;3;2;10\n2;2;3;2;10\n"
SURE = "2;1;3;2;12\n2;2;3;2;10\n"


@pytest.mark.parametrize(("rows", "verdict"), [(TIED, "unknown"), (SURE, "violated"), (SURE[:11], "holds")])
def test_a_folder_of_mobiclique_is_judged_for_every_order_that_it_allows(
    rows: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in MOBICLIQUE.items():
        (tmp_path / name).write_bytes(text)
    head = MOBICLIQUE["reception.csv"].decode().splitlines()[0]
    (tmp_path / "reception.csv").write_text(f"{head}\n2;1;2;1;7\n{rows}")
    (tmp_path / "transmission.csv").write_bytes(MOBICLIQUE["transmission.csv"].splitlines(keepends=True)[0])
    assert cli.main(["verify", str(tmp_path), "--as", "mobiclique", "--json"]) == (verdict != "holds")
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == verdict
    assert said["read"]["messages"] == 3
    (tmp_path / "messages.csv").write_text("1;2\n")
    assert cli.main(["verify", str(tmp_path), "--as", "mobiclique"]) == 2
    assert "messages.csv:1" in capsys.readouterr().err


def test_a_converter_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_format.py").write_text(
        "from precede.witness.foreign.events import Event, by_line\n"
        "from precede.files.lines import BadRow\n"
        "def parse(text, context):\n"
        "    words = text.split('|')\n"
        "    if len(words) != 3:\n"
        "        raise BadRow('not three fields')\n"
        "    yield Event(*words)\n"
        "read = by_line(parse)\n"
    )
    (tmp_path / "log.txt").write_text("a|broadcast|x\nb|delivered|x\nbad\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["verify", "log.txt", "--as", "my_format:read", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "unknown"
    assert said["read"] == {
        "as": "my_format:read",
        "rows_read": 3,
        "rows_kept": 2,
        "rows_rejected": 1,
        "reasons": {"not three fields": 1},
    }


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--as", "shivis"], "no such format"),
        (["--as", "no_such_module:read"], "no_such_module"),
        (["--as", "etcd-watch", "--columns", "node=x"], "not an option of `--as etcd-watch`"),
        (["--as", "csv", "--pattern", "x"], "not an option of `--as csv`"),
        (["--as", "csv", "--follow"], "--as reads one log"),
        (["--pattern", "x"], "--pattern needs --as"),
        (["--as", "etcd-watch"], "is `--as etcd-watch` right?"),
        (["--as", "csv"], "no column 'node'"),
        (["--as", "mobiclique"], "no folder with the files of MobiClique"),
        (["--as", "mobiclique", "--order", "total"], "the order is fifo or causal, not total"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("one,two\n1,2\n")
    assert cli.main(["verify", str(path), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert cause in said
