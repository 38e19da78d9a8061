"""Commit records: the one thing that makes files of a lake visible.

A record is `LAKE/_commits/<kind>/<name>~<generation>~<digest>.json.zst`. It names files with size, rows and
digest, says which rows of which file are which unit, and has small facts about units (a finished run, the
summary of a trace). It is written last and never changed; its own digest is in its name. So what one record
names appears at once, and a killed writer leaves files that no reader looks at.

Several records may name one unit: two drivers did the same work, or a unit was replaced. Readers choose the
record with the highest generation, then the one with the greatest digest, so all choose the same. A writer's
generation is one more than the highest it saw when it began.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.lake.storage import Storage

COMMITS: Final = "_commits"
SUFFIX: Final = ".json.zst"
DIGEST_BYTES: Final = 16

TRACES: Final = "traces"
CONTACTS: Final = "contacts"
RUNS: Final = "runs"
SWEEPS: Final = "sweeps"
SWARM: Final = "swarm"
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "segments": (TRACES,),
    "rejects": (TRACES,),
    "contacts": (TRACES, CONTACTS),
    "events": (RUNS,),
    "gauges": (RUNS,),
    "runs": (SWEEPS,),
    "verdicts": (SWEEPS,),
    "violations": (SWEEPS,),
    "measures": (SWEEPS,),
    "differences": (SWEEPS,),
    "comparisons": (SWEEPS,),
    "worlds": (SWEEPS,),
}
"""The kinds of commits that may name files of a table."""


class Damaged(BadInput):
    """A file of the lake is not what its commit record says, or a record is damaged itself."""


class Span(NamedTuple):
    """Rows of a file: the first one, and how many."""

    first: int
    rows: int


class CommittedFile(Struct, frozen=True):
    """A file as its record describes it: its path in the lake, size, rows, the digest of its bytes, units."""

    table: str
    path: str
    size: int
    rows: int
    digest: str
    units: dict[str, Span]


class Content(Struct, frozen=True):
    """What a commit record says."""

    files: tuple[CommittedFile, ...] = ()
    facts: dict[str, msgspec.Raw] = {}


class Key(NamedTuple):
    """The name of a commit record, in parts. Of two keys the greater one wins."""

    generation: int
    digest: str
    name: str
    kind: str

    @property
    def path(self) -> str:
        return f"{COMMITS}/{self.kind}/{self.name}~{self.generation}~{self.digest}{SUFFIX}"


class Fact(NamedTuple):
    """A small record about a unit, as JSON, and the generation of its commit."""

    generation: int
    raw: msgspec.Raw


class Place(NamedTuple):
    """Where a unit lies: a file, and its rows in it."""

    file: CommittedFile
    span: Span

    @property
    def is_whole(self) -> bool:
        return self.span == (0, self.file.rows)


class Commits:
    """The commit records of a lake, as they were when `refresh` was called last."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._contents: dict[Key, Content | None] = {}

    def keys(self, kind: str) -> list[Key]:
        """The keys of all records of a kind, sorted; records that another one of their name replaced too."""
        keys = []
        for entry in self.storage.entries(f"{COMMITS}/{kind}"):
            name, _, rest = entry.name.removesuffix(SUFFIX).partition("~")
            generation, _, digest = rest.partition("~")
            if entry.name.endswith(SUFFIX) and generation.isdigit() and digest:
                keys.append(Key(int(generation), digest, name, kind))
        return sorted(keys)

    def winners(self, kind: str) -> list[Key]:
        """The keys that no other record of their name replaced, in ascending order."""
        return sorted({key.name: key for key in self.keys(kind)}.values())

    def content(self, key: Key) -> Content:
        """What a record says. Raises Damaged if its bytes are not those that its name promises."""
        if key not in self._contents:
            self._contents[key] = self._read(key)
        content = self._contents[key]
        if content is None:
            raise Damaged(f"{key.path}: is damaged (its digest does not match)")
        return content

    def _read(self, key: Key) -> Content | None:
        packed = self.storage.read(key.path)
        if digest_of(packed) != key.digest:
            return None
        text = pa.input_stream(pa.BufferReader(packed), compression="zstd").read()
        return msgspec.json.decode(text, type=Content)

    def write(self, key: Key, content: bytes) -> None:
        self.storage.put(key.path, content)


class Index(NamedTuple):
    """What the winning records say together: places, facts, and the keys of `damaged` records."""

    places: dict[str, dict[str, Place]]
    facts: dict[str, Fact]
    damaged: list[Key]
    keys: list[Key]


def read_index(commits: Commits, kinds: Sequence[str]) -> Index:
    """Read the winning records of some kinds. A record that is deleted meanwhile is left out."""
    index = Index({}, {}, [], [])
    for key in sorted(key for kind in kinds for key in commits.winners(kind)):
        try:
            content = commits.content(key)
        except Damaged:
            index.damaged.append(key)
            continue
        except FileNotFoundError:
            continue
        index.keys.append(key)
        for file in content.files:
            units = index.places.setdefault(file.table, {})
            for unit, span in file.units.items():
                units[unit] = Place(file, span)
        for unit, raw in content.facts.items():
            index.facts[unit] = Fact(key.generation, raw)
    return index


def encode(files: Iterable[CommittedFile], facts: Mapping[str, Any]) -> bytes:
    text = msgspec.json.encode({"files": list(files), "facts": facts})
    return bytes(pa.compress(text, codec="zstd", asbytes=True))


def digest_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
