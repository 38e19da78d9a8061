"""Keeps evidence: in memory, in the store, in a file beside the event log; and tells the application once."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

import msgspec

from precede.core.errors import BadInput
from precede.eventlog.schema import EVIDENCE_FILE
from precede.files.private import open_private
from precede.runtime.evidence.history import Contradiction
from precede.runtime.evidence.proofs import Equivocation

MOST_OF_AN_AUTHOR: Final = 4
MOST_KEPT: Final = 1024
_MOST_FILE_BYTES: Final = 16 << 20


class EvidenceStore(Protocol):
    """The part of a store that keeps evidence."""

    def add_evidence(self, line: bytes) -> None: ...

    def evidence(self) -> list[bytes]: ...


class Redacted(msgspec.Struct, frozen=True, tag="redacted"):
    """Evidence without what identifies its author: a pseudonym, and neither keys nor headers."""

    kind: str
    author: str

    @property
    def text(self) -> str:
        """What is known about the evidence, in one sentence."""
        return f"{self.author}: evidence of the kind {self.kind}; the log is redacted, so it cannot be checked"


class KeptEvidence:
    """The evidence of one member, at most four pieces about each author. `tell` is called with each new piece.

    `folder` is the event log's, or None. `redacted` gives the pseudonym of an author, if names are redacted.
    """

    def __init__(
        self,
        group: str,
        store: EvidenceStore,
        folder: Path | None,
        tell: Callable[[Equivocation], None],
        redacted: Callable[[str], str] | None = None,
    ) -> None:
        self._group = group
        self._store = store
        self._folder = folder
        self._tell = tell
        self._redacted = redacted
        self._kept = [Equivocation.from_json(line) for line in store.evidence()]
        self._count = Counter(each.public for each in self._kept)

    def add(self, author: str, public: bytes, contradiction: Contradiction) -> None:
        """Keep a contradiction, unless enough is kept about its author. Raise OSError if the file fails."""
        if self._count[public] >= MOST_OF_AN_AUTHOR or len(self._kept) >= MOST_KEPT:
            return
        evidence = Equivocation(contradiction[0], self._group, author, public, *contradiction[1:])
        self._count[public] += 1
        self._kept.append(evidence)
        self._store.add_evidence(evidence.to_json())
        self._tell(evidence)
        self.write()

    def write(self) -> None:
        """Append what the file beside the event log does not have yet. A store can know more after a crash."""
        if self._folder is None or not self._kept:
            return
        path = self._folder / EVIDENCE_FILE
        written = set(path.read_bytes().split(b"\n")) if path.exists() else set()
        lines = [self._line(each) for each in self._kept]
        with open_private(path, append=True) as file:
            for line in dict.fromkeys(lines):
                if line not in written:
                    file.write(line + b"\n")

    def _line(self, evidence: Equivocation) -> bytes:
        if self._redacted is None:
            return evidence.to_json()
        return msgspec.json.encode(Redacted(evidence.kind, self._redacted(evidence.author)))

    def listed(self) -> list[Equivocation]:
        return list(self._kept)


def read_evidence(files: Iterable[Path]) -> Iterator[Equivocation | Redacted]:
    """Yield each piece of evidence in files once. Raise BadInput for a line that somebody made up."""
    seen: set[bytes] = set()
    for path in files:
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise BadInput(f"{path}: more than {_MOST_FILE_BYTES >> 20} MiB of evidence")
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if line not in seen:
                seen.add(line)
                yield _checked(line, f"{path}, line {number}")


def _checked(line: bytes, where: str) -> Equivocation | Redacted:
    try:
        evidence = msgspec.json.decode(line, type=Equivocation | Redacted)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise BadInput(f"{where}: no evidence: {error}") from None
    if isinstance(evidence, Equivocation) and not evidence.holds(evidence.public):
        raise BadInput(f"{where}: evidence that its author did not sign")
    return evidence
