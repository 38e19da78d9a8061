"""Rows that cannot be used: each is counted with its reason, and the counts of a file add up.

A *row* is one line of data in a file: not blank, not a comment, not a header. Every row is counted once, as
kept or as rejected; a reject has the file, the line and the reason.
"""

from typing import Final, NamedTuple

from msgspec import Struct, field

from precede.core.errors import BadInput

MAX_REJECTS: Final = 1_000_000


class Reject(NamedTuple):
    """A row that could not be used, and the reason."""

    file: str
    line: int
    reason: str


class RowCounts(Struct):
    """Counts for one file: rows read are rows kept plus rows rejected.

    `reasons` counts the rejects, and `first_places` says where the first one of each reason is.
    """

    file: str
    format: str
    rows_read: int = 0
    rows_kept: int = 0
    rows_rejected: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    first_places: dict[str, str] = field(default_factory=dict)

    def reject(self, line: int, reason: str, table: str | None = None) -> Reject:
        """Count and return a rejected row; `table` is the table inside an archive.

        The variable part of a reason comes after a colon; rejects are counted by the part before it.
        """
        self.rows_rejected += 1
        kind = reason.split(":", 1)[0]
        self.reasons[kind] = self.reasons.get(kind, 0) + 1
        self.first_places.setdefault(kind, f"line {line}" if table is None else f"{table}, line {line}")
        return Reject(self.file if table is None else f"{self.file}/{table}", line, reason)

    def rows(self) -> str:
        """Return the counts as one line of text."""
        return f"{self.rows_read:,} rows read = {self.rows_kept:,} kept + {self.rows_rejected:,} rejected"

    def rejected(self) -> list[str]:
        """Return a line of text for each reason."""
        text = []
        for reason, count in self.reasons.items():
            place = self.first_places.get(reason)
            first = "" if place is None else f" ({place})" if count == 1 else f" (the first: {place})"
            text.append(f"rejected, {reason}: {count:,}{first}")
        return text

    def check_rejects(self) -> None:
        """Raise BadInput if over a million rows were rejected so far, and they are over nine tenths of all."""
        if self.rows_rejected > MAX_REJECTS and self.rows_rejected > 0.9 * self.rows_read:
            raise BadInput(
                f"{self.file}: {self.rows_rejected:,} of the first {self.rows_read:,} rows are rejected"
                f" (the first: {next(iter(self.reasons))}); is `--as {self.format}` right?"
            )

    def check(self) -> None:
        """Raise BadInput if the file has no usable row, and AssertionError if the counts do not add up."""
        if self.rows_read != self.rows_kept + self.rows_rejected:
            raise AssertionError(f"the rows of {self.file} do not add up: {self}")
        if self.rows_read == 0:
            raise BadInput(f"{self.file}: no rows of {self.format}")
        if self.rows_kept == 0:
            reason = next(iter(self.reasons), "")
            raise BadInput(
                f"{self.file}: none of {self.rows_read:,} rows is {self.format} "
                f"(the first was rejected: {reason}); is `--as {self.format}` right?"
            )
