"""The changes of a store: those since the last commit, and those that only its journal has.

A commit appends its changes to a journal, as one row. From time to time the changes in the journal are written
to the tables, together: a value that was replaced since, and a message that was taken since, are not written
at all. That takes half the CPU of writing each commit to the tables (docs/decisions/0022).
"""

from __future__ import annotations

from msgspec import Struct, field


class Changes(Struct, array_like=True):
    """Values by key (None: deleted), delivered messages by position, the driver's numbers, rows of the log.

    Keys, values and messages are encoded.
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    delivered: dict[int, bytes] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    rows: list[bytes] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.values or self.delivered or self.numbers or self.rows)

    def add(self, later: Changes) -> None:
        """Add the changes of a later commit."""
        self.values |= later.values
        self.delivered |= later.delivered
        self.numbers |= later.numbers
        self.rows += later.rows

    def clear(self) -> None:
        self.values.clear()
        self.delivered.clear()
        self.numbers.clear()
        self.rows.clear()
