"""Mistakes in a scenario: each is one line with file, line and cause, and no run is endless."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

import precede
from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import carry_out
from precede.experiments.scenario import read_scenario
from precede.experiments.swarm.events import events_of
from precede.experiments.tables import csv_rows
from precede.protocols import registry
from precede.witness.verify import verify

P2P = "point_to_point"
WORLDS = {
    P2P: ('kind = "point_to_point"\nnodes = 4', "vector_clock"),
    "flood": ('kind = "flood"\nnodes = 4', "drift"),
    "switched": ('kind = "switched"\nnodes = 4', "vcube"),
    "cellular": ('kind = "cellular"\nstations = 2\nhosts = 3\nduration = "5s"', "was"),
}
EVERY = 'every = "1s"\nuntil = "3s"'


def attempt(
    folder: Path, kind: str, world: str = "", workload: str = EVERY, faults: str = "", run: str = ""
) -> str:
    """The error of `precede simulate`; empty when the scenario runs."""
    first, protocol = WORLDS[kind]
    lines = first.splitlines()
    if world.split(" ", 1)[0] == "nodes":
        lines.pop()
    protocol_line = "" if run.startswith("protocol") else f'protocol = "{protocol}"'
    tables = ["[world]", *lines, world, "[workload]", workload, "[faults]", faults, "[run]", protocol_line, run]
    path = folder / "mine.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    try:
        carry_out(read_scenario(str(path)), TableSink())
    except BadInput as error:
        return str(error).replace(f"{folder}/", "")
    return ""


@pytest.mark.parametrize("kind", WORLDS)
def test_the_scenario_without_a_mistake_runs(tmp_path: Path, kind: str) -> None:
    assert attempt(tmp_path, kind, run='end = "5s"') == ""


@pytest.mark.parametrize(
    ("kind", "world", "cause"),
    [
        (
            "point_to_point",
            "nodes = 99999999999999999999",
            "mine.toml:3: nodes: 99999999999999999999 is not between 1 and 1000000",
        ),
        (
            "point_to_point",
            'delay = "normal(1, -1)"',
            "mine.toml:4: delay: 'normal(1, -1)': the deviation must",
        ),
        (P2P, 'delay = "triangular(0, 5, 1)"', "the peak is not between the bounds"),
        (P2P, 'delay = "constant(1e300)"', "more than 1e+11 cannot be simulated"),
        (
            "point_to_point",
            'partitions = [{ start = "5s", end = "1s", groups = [["0"], ["1"]] }]',
            "ends before",
        ),
        (
            "point_to_point",
            'partitions = [{ start = 1, end = 2, groups = [["0"], ["0"]] }]',
            "'0' is in two groups",
        ),
        (
            P2P,
            'partitions = [{ start = 1, end = 2, groups = "01" }]',
            "groups: expected a list of lists",
        ),
        (P2P, "partitions = [{ begin = 1, end = 2, groups = [] }]", "unknown key 'begin'"),
        ("flood", 'field = "wide"', "mine.toml:4: field: expected two numbers, got 'wide'"),
        ("flood", "grid = [2.5, 2]", "expected [columns, rows], got [2.5, 2]"),
        ("flood", 'places = "."', "is a folder"),
        ("flood", "speed = inf", "mine.toml:4: speed: inf is not between 0 and 1e9"),
        ("flood", 'presence = [{ node = "0", entre = "5s" }]', "unknown key 'entre' (did you mean 'enter'?)"),
        ("flood", 'presence = [{ node = "0", enter = -5 }]', "-5 is less than nothing"),
        ("flood", 'presence = [{ node = "0", enter = "5s", leave = "1s" }]', "leaves before it enters"),
        ("flood", 'presence = [{ node = "0" }, { node = "0" }]', "node '0' enters while it is already there"),
        ("switched", 'stays = [{ node = "1", leaves = "2s" }]', "(did you mean 'leave'?)"),
        ("cellular", 'stays = [{ node = "h1" }, { node = "h1" }]', "a second stay of host 'h1'"),
        (
            "cellular",
            'moves = [{ host = "h0", at = "1s", cel = "s1" }]\nmovement = "moves"',
            "did you mean 'cell'?",
        ),
    ],
)
def test_a_wrong_world_is_refused(tmp_path: Path, kind: str, world: str, cause: str) -> None:
    assert cause in attempt(tmp_path, kind, world, run='end = "5s"')


@pytest.mark.parametrize(
    ("kind", "world", "key", "reason"),
    [
        ("cellular", "loss = 0.2", "loss", 'with radio = "contention"'),
        ("cellular", 'moves = [{ host = "h0", at = "1s", cell = "s1" }]', "moves", 'with movement = "walk"'),
        ("flood", "spacing = 50", "spacing", "without `grid`"),
        ("flood", "mobile = 2", "mobile", "without `speed`"),
        ("flood", "grid = [2, 2]", "nodes", "with `grid`"),
    ],
)
def test_a_key_without_effect_is_an_error(tmp_path: Path, kind: str, world: str, key: str, reason: str) -> None:
    """For example loss belongs to the lossy radio: a user who sets it must not get a world without loss."""
    error = attempt(tmp_path, kind, world, run='end = "5s"')
    assert f"{key}: has no effect {reason}; leave it out" in error
    assert error.startswith("mine.toml:")


def test_two_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("node,x,y\na,0,0\nb,50,0\na,0,50\n", encoding="utf-8")
    first, protocol = 'kind = "flood"\nplaces = "places.csv"', "drift"
    (tmp_path / "s.toml").write_text(
        f'[world]\n{first}\n[workload]\n{EVERY}\n[run]\nprotocol = "{protocol}"', encoding="utf-8"
    )
    with pytest.raises(BadInput, match=r"places\.csv:4: a second node 'a'"):
        carry_out(read_scenario(str(tmp_path / "s.toml")), TableSink())


@pytest.mark.parametrize(
    ("workload", "cause"),
    [
        ('every = "0s"\nuntil = "3s"', "mine.toml:6: every: no time between messages, and no count"),
        ('poisson = "0s"\nuntil = "3s"', "poisson: no time between messages"),
        ('every = "1s"', "endless messages in an endless world"),
        ('every = "1s"\nuntil = "3s"\nsize = 99999999999999', "size: 99999999999999 is not between 0 and"),
        ('script = [{ src = "0", at = "1s", to = "12" }]', "to: expected a list of names, got '12'"),
        ('script = [{ src = "0", at = "1s", lifetme = "1s" }]', "did you mean 'lifetime'?"),
        ('script = [{ src = "0", at = [] }]', "not a duration: []"),
    ],
)
def test_a_wrong_workload_is_refused(tmp_path: Path, workload: str, cause: str) -> None:
    assert cause in attempt(tmp_path, P2P, workload=workload)


def test_many_messages_at_one_instant_need_a_count(tmp_path: Path) -> None:
    assert attempt(tmp_path, P2P, workload='every = "0s"\ncount = 5') == ""


@pytest.mark.parametrize(
    ("faults", "cause"),
    [
        (
            "crashes = [1]",
            "crashes: expected a list of { node, at, after, restart, keep, again }, and 1 is no such element",
        ),
        ('crashes = [{ node = "0", at = -1 }]', "-1 is less than nothing"),
        ('crashes = [{ node = "0", at = "5s", restart = "1s" }]', "restarts before it crashes"),
        (
            'crashes = [{ node = "0", at = "5s", after = "x" }]',
            "after: expected a number of steps, 0 or more, got 'x'",
        ),
        ('crashes = [{ node = "0", at = "5s", keep = "no" }]', "keep: expected true or false, got 'no'"),
        ('crashes = [{ node = "9", at = "5s" }]', "no node '9'"),
        ('stalls = [{ node = "0", at = "5s", duration = -1 }]', "-1 is less than nothing"),
        ("skew = -1", "mine.toml:9: skew"),
    ],
)
def test_wrong_faults_are_refused(tmp_path: Path, faults: str, cause: str) -> None:
    assert cause in attempt(tmp_path, P2P, faults=faults)


@pytest.mark.parametrize(
    ("run", "cause"),
    [
        ("end = 0", "mine.toml:12: end: expected a duration such as '20s', got 0"),
        ('gauges = "0s"', "gauges: an interval of 0s would stop simulated time"),
        ("options = 3", "mine.toml:12: options: expected a table"),
        ("options = { bogus = 1 }", "mine.toml:12: options: protocol 'vector_clock' has no option 'bogus'"),
        ('protocol = "vectorclock"', "mine.toml:12: protocol: unknown protocol 'vectorclock'"),
    ],
)
def test_a_wrong_run_table_is_refused(tmp_path: Path, run: str, cause: str) -> None:
    assert cause in attempt(tmp_path, P2P, run=run)


def test_settings_from_a_program_keep_their_types(tmp_path: Path) -> None:
    """Once `fifo=True` was read as the text "True", and seed "7" gave another world than seed 7."""
    small = {"until": "2s", "crashes": [], "fifo": True, "sources": ["0", "1"], "nodes": 3, "loss": 0}
    assert precede.simulate("small-office", seed=7, settings=small).verify().holds
    for seed in ("7", 7.5):
        with pytest.raises(BadInput, match="seed: expected a whole number"):
            precede.simulate("small-office", seed=seed)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="scenario: expected a built-in name or a TOML file"):
        precede.simulate({"world": {}})  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["vector_clock", "fifo", "prs", "vcube"])
def test_a_node_that_restarts_without_state_is_a_new_incarnation(protocol: str) -> None:
    """Once it kept its incarnation and delivered everything again, which the witness called a violation."""
    run = read_scenario("small-office", protocol, 1)
    run = msgspec.structs.replace(
        run, options={key: run.options[key] for key in run.options if key != "durable"}
    )
    sink = TableSink()
    carry_out(run, sink)
    incarnations = {(row["node"], row["incarnation"]) for row in events_of(sink.events(), "started")}
    assert ("2", 1) in incarnations
    assert verify(sink.events(), registry.find(protocol).order).holds


def test_a_crash_cannot_keep_state_that_the_protocol_does_not_persist(tmp_path: Path) -> None:
    crash = 'crashes = [{ node = "0", at = "1s", restart = "2s", keep = true }]'
    assert "node '0' cannot keep its state while the protocol's option durable is off" in attempt(
        tmp_path, P2P, faults=crash
    )
    assert attempt(tmp_path, P2P, faults=crash, run="options = { durable = true }") == ""


@pytest.mark.parametrize(
    ("written", "cause"),
    [(b"\xff\xfe\x00", "not a CSV file"), (b"node,x\na,1\n", ":1: no column time, y"), (b"", ":1: no column")],
)
def test_a_file_that_is_no_csv_is_an_error_with_its_line(tmp_path: Path, written: bytes, cause: str) -> None:
    (tmp_path / "positions.csv").write_bytes(written)
    with pytest.raises(BadInput, match=cause):
        list(csv_rows(tmp_path / "positions.csv", ("node", "time", "x", "y")))


def test_rows_of_csv_are_those_of_a_dict_reader(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('id,src,time\n1,a,2\n\n2,b\n"x\ny",c,4\n3,d,5,6,7\n \n')
    with file.open(newline="") as opened:
        reader = csv.DictReader(opened)
        expected = [(f"{file}:{reader.line_num}", row) for row in reader]
    assert len(expected) == 5
    assert list(csv_rows(file, ("id", "src"))) == expected


def test_gauges_none_samples_nothing() -> None:
    sampled, unsampled = TableSink(), TableSink()
    for word, sink in (("1s", sampled), ("none", unsampled)):
        carry_out(read_scenario("small-office", settings={"gauges": word}), sink)
    assert sampled.gauges().num_rows > 0
    assert unsampled.gauges().num_rows == 0
