"""The runs of one bucket, and the files of their state.

Runs are divided into buckets by a hash of their names; one task judges the rows of one bucket in a batch. It
writes one file with the pieces of the state (`precede.witness.live.state`) that changed: about the run, about
each node with new rows, and about the messages of one block. The state of a bucket is what its files say
together, the newest last. When the changes outgrow the first file, everything is written to one new file. Files
are never changed, and count only when the ledger names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from precede.core.errors import BadInput
from precede.lake.commits import digest_of
from precede.lake.storage import Storage
from precede.pipeline.following.rows import BUCKET, live_rows, run_columns
from precede.pipeline.following.standings import BucketReport, Reject, Standing, StateFile
from precede.pipeline.judging.query import Query
from precede.witness.live.agreement import LiveAgreement
from precede.witness.live.live import LiveRun
from precede.witness.live.state import LiveState

FILES_KEPT: Final = 30
"""A bucket has at most so many files of changes."""

SMALL: Final = 1 << 18
"""Changes of so many bytes together are not too many, however small the first file is."""

REPORT_DDL: Final = "report binary"
_Group = tuple[str, ...]


class Bucket:
    """The runs of one bucket, in memory; `files` is the state that they were read from."""

    def __init__(self, storage: Storage, query: Query, retain_us: int | None) -> None:
        self.storage, self.query, self.retain_us = storage, query, retain_us
        self.runs: dict[_Group, LiveRun] = {}
        self.files: list[StateFile] = []

    def load(self, files: Sequence[StateFile]) -> None:
        """Read the runs from files. Raises BadInput if one of them is missing or damaged."""
        stored: dict[_Group, dict[str, bytes]] = {}
        for file in files:
            for group, name, content in _read(self.storage, file.path):
                pieces = stored.setdefault(group, {})
                if content is None:
                    pieces.pop(name, None)
                else:
                    pieces[name] = content
        self.runs = {group: self._run(LiveState.restore(pieces)) for group, pieces in stored.items()}
        self.files = list(files)

    def run(self, group: _Group) -> LiveRun:
        """The run of this name; a new one if there is none."""
        return self.runs.setdefault(group, self._run(None)) if group not in self.runs else self.runs[group]

    def _run(self, state: LiveState | None) -> LiveRun:
        query = self.query
        options: dict[str, Any] = {"members": query.members, "retain_us": self.retain_us}
        return LiveRun(query.order, query.duplicates == "allow", state, **options)

    def save(self, number: int, batch: int, changed: Sequence[_Group]) -> None:
        """Write what changed in some runs to a file, or all runs if the changes have become too many."""
        changes = [
            (group, name, content)
            for group in changed
            for name, content in self.runs[group].state.changes().items()
        ]
        packed = _pack(changes)
        later = sum(file.size for file in self.files[1:]) + len(packed)
        whole = not self.files or len(self.files) > FILES_KEPT or later > max(self.files[0].size, SMALL)
        if whole:
            packed = _pack(
                (group, name, content)
                for group, run in self.runs.items()
                for name, content in run.state.pieces().items()
            )
        path = f"state/{number}/{batch}-{digest_of(packed)}.zst"
        self.storage.put(path, packed)
        self.files = [*([] if whole else self.files), StateFile(path, len(packed))]


_BUCKETS: dict[tuple[str, int], Bucket] = {}
"""The buckets that this worker process handled last: a cache that saves reading their files."""


class Judge:
    """Adds the rows of one batch to the runs of one bucket; Spark calls it with an Arrow table."""

    def __init__(
        self,
        query: Query,
        retain_us: int | None,
        checkpoint: str,
        batch: int,
        files: Mapping[int, Sequence[StateFile]],
    ) -> None:
        self.query, self.retain_us, self.checkpoint = query, retain_us, checkpoint
        self.batch, self.files = batch, files

    def __call__(self, table: pa.Table) -> pa.Table:
        number = table[BUCKET][0].as_py()
        report = self.judge(number, table)
        return pa.table({"report": pa.array([msgspec.msgpack.encode(report)], pa.binary())})

    def judge(self, number: int, table: pa.Table) -> BucketReport:
        """Judge the rows of a bucket, and store its state after them."""
        bucket = self._bucket(number)
        valid = pc.is_null(table["cause"])
        rejects = table.filter(pc.invert(valid)).select(["place", "cause"]).to_pylist()
        standings = [
            self._add(number, bucket.run(group), group, rows)
            for group, rows in self._groups(table.filter(valid))
        ]
        if standings:
            bucket.save(number, self.batch, [tuple(standing.group) for standing in standings])
        _BUCKETS[self.checkpoint, number] = bucket
        return BucketReport(
            number,
            bucket.files,
            standings,
            [_reject(each["place"], each["cause"]) for each in rejects],
        )

    def _bucket(self, number: int) -> Bucket:
        """The bucket before this batch: from this process's cache, or from its files.

        It leaves the cache until it is saved, because an attempt that fails may have changed it.
        """
        files = list(self.files.get(number, ()))
        bucket = _BUCKETS.pop((self.checkpoint, number), None)
        if bucket is None or bucket.files != files:
            bucket = Bucket(Storage(self.checkpoint), self.query, self.retain_us)
            bucket.load(files)
        return bucket

    def _groups(self, table: pa.Table) -> Iterator[tuple[_Group, pa.Table]]:
        """The rows of each run, by the names of the runs."""
        names = [table[name].to_pylist() for name in run_columns(self.query.by)]
        places: dict[_Group, list[int]] = {}
        for place, group in enumerate(zip(*names, strict=True)):
            places.setdefault(tuple(map(str, group)), []).append(place)
        for group in sorted(places):
            yield group, table.take(places[group])

    def _add(self, number: int, run: LiveRun, group: _Group, rows: pa.Table) -> Standing:
        facts = run.state.facts
        before = len(facts.conflicts)
        violations = run.add(live_rows(rows))
        agreement = LiveAgreement(run.state, self.query.members)
        written: dict[str, int] = {}
        for at in rows["written"].to_pylist():
            key = f"{at:.1f}"
            written[key] = written.get(key, 0) + 1
        return Standing(
            group=list(group),
            bucket=number,
            order=facts.order,
            rows=facts.rows,
            deliveries=facts.deliveries,
            counts=dict(facts.counts),
            held=run.state.held,
            parked=run.state.parked,
            waits_for=run.state.waits_for(),
            conflicts=list(facts.conflicts),
            new_conflicts=facts.conflicts[before:],
            violations=violations,
            written=written,
            timed=facts.timed,
            clock_missing=facts.clock_missing,
            absent=agreement.absent,
            lacks=agreement.lacks,
            first_lack=agreement.first(),
        )


def _reject(place: str, cause: str) -> Reject:
    topic, partition, offset = msgspec.json.decode(place, type=tuple[str, int, int])
    return Reject(topic, partition, offset, cause)


def _pack(pieces: Any) -> bytes:
    return bytes(pa.compress(msgspec.msgpack.encode(list(pieces)), codec="zstd", asbytes=True))


def _read(storage: Storage, path: str) -> list[tuple[_Group, str, bytes | None]]:
    """The pieces in a file, whose digest is in its name."""
    try:
        packed = storage.read(path)
    except FileNotFoundError:
        raise BadInput(f"{storage.location}/{path}: is missing; begin anew with another --checkpoint") from None
    if digest_of(packed) not in path:
        raise BadInput(f"{storage.location}/{path}: is damaged; begin anew with another --checkpoint")
    content = pa.input_stream(pa.BufferReader(packed), compression="zstd").read()
    return msgspec.msgpack.decode(content, type=list[tuple[_Group, str, bytes | None]])
