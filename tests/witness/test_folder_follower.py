"""The follower of a folder finds what `verify` finds, in pieces that appear late, twice or replaced."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.witness.live.folder import FolderFollower
from precede.witness.verify import verify


def log_of(protocol: str) -> pa.Table:
    sink = TableSink()
    world = {"kind": "point_to_point", "nodes": 4, "delay": "exponential(0.5)"}
    workload = {"poisson": "200ms", "until": "8s", "size": 20}
    carry_out(Run(world=world, workload=workload, protocol=protocol, seed=1, end="20s"), sink)
    return sink.events()


def in_pieces(log: pa.Table, folder: Path) -> list[Path]:
    """Each node's log in segments of 50 rows, as members write them; returned with the last rows first."""
    paths = []
    for node in log["node"].unique().to_pylist():
        rows = log.filter(pc.equal(log["node"], node)).sort_by("step")
        (folder / node).mkdir()
        for first in range(0, len(rows), 50):
            paths.append(folder / node / f"events-{first:06d}.parquet")
            pq.write_table(rows.slice(first, 50), paths[-1])
    return paths[::-1]


@pytest.mark.parametrize("protocol", ["unordered", "causal_barrier"])
def test_a_folder_is_judged_as_the_whole_log(protocol: str, tmp_path: Path) -> None:
    log, folder = log_of(protocol), tmp_path / "logs"
    folder.mkdir()
    (tmp_path / "kept").mkdir()
    pieces = in_pieces(log, tmp_path / "kept")
    pq.write_table(log, tmp_path / "whole.parquet")
    expected = verify(tmp_path / "whole.parquet", order="causal").violations
    follower = FolderFollower(folder)
    for number, piece in enumerate(pieces):
        piece.rename(folder / f"{number}-{piece.name}")
        follower.poll()
    assert sum(follower.counts.values()) == expected
    assert (expected > 0) == (protocol == "unordered")
    assert follower.waiting == 0
    assert follower.waits_for == []
    pq.write_table(log, folder / "again.parquet")
    assert follower.poll() == []


def test_a_look_reads_a_part_of_a_long_log(tmp_path: Path) -> None:
    for _ in in_pieces(log_of("causal_barrier"), tmp_path):
        pass
    follower = FolderFollower(tmp_path)
    follower.poll(most=3)
    assert 0 < follower.rows <= 150
    assert follower.unread > 0
    follower.poll()
    assert follower.unread == 0


def test_what_is_no_segment_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere: not a folder with event logs"):
        FolderFollower(tmp_path / "nowhere")
    (tmp_path / ".events.parquet.77").write_bytes(b"half written")
    (tmp_path / ".events.parquet").write_bytes(b"half written")
    assert FolderFollower(tmp_path).poll() == []
    (tmp_path / "events.parquet").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match=r"events\.parquet: not a segment of an event log"):
        FolderFollower(tmp_path).poll()
    pq.write_table(pa.table({"node": ["a"]}), tmp_path / "events.parquet")
    with pytest.raises(BadInput, match="a column is missing"):
        FolderFollower(tmp_path).poll()
