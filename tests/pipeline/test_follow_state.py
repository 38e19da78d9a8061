"""What a follower stores: only what a batch changed, and after a kill at any write exactly the same tables."""

from __future__ import annotations

from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.core.errors import BadInput
from precede.lake.storage import Storage
from precede.pipeline.following import state
from precede.pipeline.following.ledger import Ledger
from precede.pipeline.following.messages import NAMES, Decoder
from precede.pipeline.following.rows import arrow_schema
from precede.pipeline.following.state import Judge
from precede.pipeline.judging.query import settle_query
from tests.pipeline.segments import make_run

MEMBERS = tuple(f"n{node}" for node in range(6))
QUERY, LAYOUT = settle_query(NAMES, "causal", members=MEMBERS, keep_times=True)


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


def batches(messages=60, size=80):
    """Batches of rows in random order, with bad messages, from three runs."""
    runs = [
        make_run(f"r{number}", messages=messages, faults=("causal", "duplicate"), seed=number)
        for number in range(3)
    ]
    rows = [row for run in runs for own in run.values() for row in own]
    Random(1).shuffle(rows)
    decode = Decoder(LAYOUT, "causal")._row
    decoded = [decode(msgspec.json.encode(row)) | {"written": 1.0, "place": "[]"} for row in rows]
    bad = {"place": '["t", 0, 5]', "cause": "not JSON", "written": 1.0}
    decoded.insert(100, bad)
    schema = arrow_schema(QUERY.by)
    return [pa.Table.from_pylist(decoded[at : at + size], schema) for at in range(0, len(decoded), size)]


def follow(folder, work):
    """What the driver does with each batch, without Spark. The batch before the last one is repeated."""
    state._BUCKETS.clear()  # a new process
    ledger = Ledger.open(folder, QUERY, LAYOUT.columns)
    for number, table in enumerate(work):
        if number <= ledger.done:
            continue
        buckets = []
        for bucket in range(2):
            own = [name for name in ("r0", "r1", "r2", None) if (name == "r1") == bool(bucket)]
            mask = [value in own for value in table["by0"].to_pylist()]
            rows = table.filter(pa.array(mask))
            if len(rows):
                judge = Judge(QUERY, None, str(folder), number, ledger.files)
                buckets.append(judge.judge(bucket, rows))
        ledger.enter(number, buckets)
        ledger.close(number, buckets)
    return ledger


def tables(folder):
    return {
        name: sorted(map(str, pq.read_table(folder / "tables" / name).to_pylist()))
        for name in ("verdicts", "violations", "rejects")
    }


@pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.long)])
def test_tables_are_exact_after_a_kill_at_any_write(tmp_path, monkeypatch, every):
    work = batches()
    follow(tmp_path / "whole", work)
    expected = tables(tmp_path / "whole")
    assert len(expected["violations"]) == 6
    assert len(expected["rejects"]) == 1
    put, writes, limit = Storage.put, [0], [0]

    def put_or_die(storage, path, content, durable=True):
        writes[0] += 1
        if writes[0] == limit[0]:
            raise Killed
        put(storage, path, content, durable)
        if writes[0] == -limit[0]:
            raise Killed

    monkeypatch.setattr(Storage, "put", put_or_die)
    follow(tmp_path / "counted", work)
    for kill in range(1, writes[0] + 1, every):
        for sign in (1, -1):  # before the file is visible, and after
            folder = tmp_path / f"{kill}{sign}"
            writes[0], limit[0] = 0, sign * kill
            with pytest.raises(Killed):
                follow(folder, work)
            limit[0] = 0
            ledger = follow(folder, work)
            assert tables(folder) == expected, f"kill at write {kill}"
            files = {file.path for files in ledger.files.values() for file in files}
            assert {str(path.relative_to(folder)) for path in (folder / "state").rglob("*.zst")} == files


def test_a_batch_writes_only_what_it_changed(tmp_path, monkeypatch):
    """A batch with rows of one node of one run writes pieces of that run and node, not of the others."""
    monkeypatch.setattr(state, "SMALL", 1 << 30)
    work = batches()
    ledger = follow(tmp_path, work)
    rows = pa.concat_tables(work)
    mask = [(row["by0"], row["node"]) == ("r0", "n2") for row in rows.to_pylist()]
    repeated = rows.filter(pa.array(mask)).slice(0, 5)
    report = Judge(QUERY, None, str(tmp_path), 999, ledger.files).judge(0, repeated)
    pieces = state._read(Storage(tmp_path), report.files[-1].path)
    assert {(group, name) for group, name, _ in pieces} == {(("r0",), "run"), (("r0",), pieces[1][1])}
    assert report.files[:-1] == ledger.files[0]


def test_a_damaged_or_missing_state_is_one_line(tmp_path):
    work = batches()
    ledger = follow(tmp_path, work[:3])
    path = tmp_path / ledger.files[0][0].path
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    state._BUCKETS.clear()
    with pytest.raises(BadInput, match=r"\.zst: is damaged; begin anew"):
        Judge(QUERY, None, str(tmp_path), 3, ledger.files).judge(0, work[3])
    path.unlink()
    with pytest.raises(BadInput, match=r"\.zst: is missing; begin anew"):
        Judge(QUERY, None, str(tmp_path), 3, ledger.files).judge(0, work[3])
