"""Fewer and larger files: small packs of runs are merged, and replaced rows and leftovers are removed.

A merged pack has the generation of its parts, so that a run that another driver repeats at the same time still
wins. The new record appears before the old ones are removed; a reader that loses a file under its hands reads
the records again. So compaction may run beside any other job.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from precede.lake.commits import COMMITS, KINDS, RUNS, CommittedFile, Content, Damaged, Key, Span
from precede.lake.integrity import verified
from precede.lake.jobs import Job, write_rows
from precede.lake.layout import ROWS_A_GROUP, Lake
from precede.lake.versions import upgraded

SMALL_BYTES: Final = 4 << 20
"""A commit whose files have fewer bytes together is merged with others of its kind."""

_PACK_BYTES: Final = 64 << 20
_KINDS: Final = sorted({kind for kinds in KINDS.values() for kind in kinds})
_UNITS_A_PACK: Final = 5_000


class Compacted(Struct, frozen=True):
    """How many files of tables and commit records a lake had and has, and how many leftovers were removed."""

    files_before: int
    files: int
    leftovers: int


class _Part(NamedTuple):
    """A commit, and what of it no other commit has replaced."""

    key: Key
    content: Content
    files: list[tuple[CommittedFile, dict[str, Span]]]
    facts: dict[str, msgspec.Raw]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.content.files)

    @property
    def is_empty(self) -> bool:
        """Has everything been replaced?"""
        return not self.facts and not any(spans for _, spans in self.files)

    @property
    def has_replaced_rows(self) -> bool:
        return any(spans != file.units for file, spans in self.files)


def compact(job: Job, older_than_s: float | None = None, at_least: int = 2, kind: str = RUNS) -> Compacted:
    """Merge the small commits of a kind, such as packs of runs, and remove replaced rows.

    They are merged only if there are `at_least` small ones. With `older_than_s`, files that no record names
    and files of jobs are removed if they are older than that.
    """
    lake = job.lake
    before = count_files(lake)
    parts = _parts(lake, kind)
    for part in parts:
        if part.is_empty:
            remove_commit(lake, part.key, ())
    alive = [part for part in parts if not part.is_empty]
    is_merging = sum(part.size < SMALL_BYTES for part in alive) >= at_least
    chosen = [p for p in alive if p.has_replaced_rows or (is_merging and p.size < SMALL_BYTES)]
    for group in _groups(chosen):
        _merge(job, group)
    leftovers = 0 if older_than_s is None else _remove_leftovers(job, time.time() - older_than_s)
    return Compacted(before, count_files(lake), leftovers)


def count_files(lake: Lake) -> int:
    folders = [*KINDS, *(f"{COMMITS}/{kind}" for kind in _KINDS)]
    return sum(len(lake.storage.entries(folder)) for folder in folders)


def remove_commit(lake: Lake, key: Key, needed: Sequence[str]) -> None:
    """Delete a record, then its files except the needed ones."""
    files = lake.commits.content(key).files
    lake.storage.delete(key.path)
    for file in files:
        if file.path not in needed:
            lake.storage.delete(file.path)


def _parts(lake: Lake, kind: str) -> list[_Part]:
    """The commits of a kind, each with what no other one has replaced."""
    contents: dict[Key, Content] = {}
    rows: dict[tuple[str, str], Key] = {}
    facts: dict[str, Key] = {}
    for key in lake.commits.winners(kind):
        try:
            contents[key] = lake.commits.content(key)
        except (Damaged, FileNotFoundError):
            continue
        rows |= {(file.table, unit): key for file in contents[key].files for unit in file.units}
        facts |= dict.fromkeys(contents[key].facts, key)
    return [
        _Part(
            key,
            content,
            [
                (file, {unit: span for unit, span in file.units.items() if rows[file.table, unit] == key})
                for file in content.files
            ],
            {unit: raw for unit, raw in content.facts.items() if facts[unit] == key},
        )
        for key, content in contents.items()
    ]


def _groups(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Divide commits into groups that become one pack each; all commits of a group have one generation."""
    group: list[_Part] = []
    size = units = 0
    for part in sorted(parts, key=lambda part: part.key):
        is_full = size + part.size > _PACK_BYTES or units + len(part.facts) > _UNITS_A_PACK
        if group and (is_full or part.key.generation != group[0].key.generation):
            yield group
            group, size, units = [], 0, 0
        group.append(part)
        size, units = size + part.size, units + len(part.facts)
    if group:
        yield group


def _merge(job: Job, group: Sequence[_Part]) -> None:
    """Replace some commits by one; a group of one intact commit stays as it is."""
    intact = [part for part in group if _is_intact(job, part)]
    if not intact or (len(intact) == 1 and not intact[0].has_replaced_rows):
        return
    digest = blake2b("".join(part.key.digest for part in intact).encode(), digest_size=8).hexdigest()
    name, tables = f"merged-{digest}", Counter(file.table for part in intact for file, _ in part.files)
    files = [_merged_file(job, name, table, intact) for table in sorted(tables)]
    facts = {unit: raw for part in intact for unit, raw in part.facts.items()}
    job.commit(intact[0].key.kind, name, files, facts, intact[0].key.generation)
    for part in intact:
        remove_commit(job.lake, part.key, [file.path for file in files])


def _is_intact(job: Job, part: _Part) -> bool:
    """Are all files of a commit what it says? A damaged one stays as it is; `precede lake check` lists it."""
    try:
        return all(verified(job.storage, file).is_file() for file in part.content.files)
    except (Damaged, FileNotFoundError):
        return False


def _merged_file(job: Job, name: str, table: str, parts: Sequence[_Part]) -> CommittedFile:
    sources = [(file, spans) for part in parts for file, spans in part.files if file.table == table and spans]
    merged: dict[str, Span] = {}
    first = 0
    for _, spans in sources:
        for unit, span in sorted(spans.items(), key=lambda item: item[1]):
            merged[unit] = Span(first, span.rows)
            first += span.rows
    with job.workspace() as folder:
        paths = [verified(job.storage, file) for file, _ in sources]
        rows = (batch for path, (_, spans) in zip(paths, sources, strict=True) for batch in _rows(path, spans))
        schema = upgraded(pq.read_schema(paths[0]).empty_table(), paths[0]).schema if paths else None
        write_rows(folder / "pack.parquet", table, rows, schema)
        return job.add_file(table, name, folder / "pack.parquet", merged)


def _rows(path: Path, spans: dict[str, Span]) -> Iterator[pa.RecordBatch]:
    ordered = sorted(spans.values())
    begin = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS_A_GROUP):
            end = begin + batch.num_rows
            for span in ordered:
                low, high = max(span.first, begin), min(span.first + span.rows, end)
                if low < high:
                    yield upgraded(batch.slice(low - begin, high - low), path)
            begin = end


def _remove_leftovers(job: Job, before: float) -> int:
    """Remove old files that no record names and old files of jobs; returns how many."""
    lake = job.lake
    keys = [key for kind in _KINDS for key in lake.commits.keys(kind)]
    named = {file.path for key in keys for file in lake.commits.content(key).files}
    old = [path for table in KINDS for path, changed in lake.storage.walk(table) if changed < before]
    leftovers = [path for path in old if "~" in path and path not in named]
    leftovers += [
        path
        for path, changed in lake.storage.walk("_jobs")
        if changed < before and not path.startswith(job.attempt)
    ]
    for path in leftovers:
        lake.storage.delete(path)
    for attempt in sorted({"/".join(path.split("/")[:3]) for path in leftovers if path.startswith("_jobs/")}):
        if not any(lake.storage.walk(attempt)):
            lake.storage.delete_folder(attempt)  # in a storage of folders, the empty ones are left
    return len(leftovers)
