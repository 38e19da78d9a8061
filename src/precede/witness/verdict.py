"""The result of a verification: a verdict, the violations it rests on, the rows that prove them.

`Verdict.plain` is the one form of a verdict as plain data; the JSON of `precede verify`, the rows that Spark
tasks return and the tables of the lake are selections of its keys. docs/concepts/orders.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput

Order: TypeAlias = Literal["fifo", "causal", "multicast", "delta", "total", "display"]
Answer: TypeAlias = Literal["holds", "violated", "unknown"]
Duplicates: TypeAlias = Literal["forbid", "allow"]
Steps: TypeAlias = Literal["counted", "ordered"]

ORDERS: Final[tuple[Order, ...]] = ("fifo", "causal", "multicast", "delta", "total", "display")

Offence: TypeAlias = Literal[
    "ghost",
    "before_broadcast",
    "duplicate",
    "not_addressed",
    "fifo",
    "causal",
    "multicast",
    "expired",
    "total",
    "agreement",
    "answer_first",
    "answer_above",
]

REASONS_SHOWN: Final = 5
"""The most reasons or findings that a verdict lists; a last line counts the others."""


def read_order(text: str) -> Order:
    """Return the order with this name. Raises BadInput for an unknown one.

    >>> read_order("causal")
    'causal'
    """
    for order in ORDERS:
        if text == order:
            return order
    raise BadInput(f"order: {text!r} is none of {', '.join(ORDERS)}")


class Row(Struct, frozen=True):
    """One row of the log, as evidence."""

    node: str
    incarnation: int
    step: int
    event: Literal["broadcast", "delivered"]
    message: str

    def plain(self) -> dict[str, Any]:
        """Return the row as plain data, without an incarnation of 0."""
        incarnation = {"incarnation": self.incarnation} if self.incarnation else {}
        return {
            "node": self.node,
            **incarnation,
            "step": self.step,
            "event": self.event,
            "message": self.message,
        }


class Violation(Struct, frozen=True):
    """One delivery that breaks a rule.

    `other` is the message that should have come later, or whose order two nodes disagree about. `chain` is m ->
    ... -> m' for a causal violation. `rows` prove the violation, `story` explains it in words. `group` names
    the independent order in a log of several.

    >>> import precede
    >>> first = precede.simulate("small-office", "unordered", seed=7).verify("causal").first
    >>> first.kind, len(first.rows), first.story.splitlines()[0]
    ('causal', 4, 'Node 0 delivered 4:2 before 4:1, but 4:1 -> 4:2.')
    """

    kind: Offence
    node: str
    incarnation: int
    step: int
    message: str
    group: tuple[tuple[str, str], ...] = ()
    other: str | None = None
    chain: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    story: str = ""

    def plain(self) -> dict[str, Any]:
        """Return the violation as plain data, without fields that are empty."""
        optional: dict[str, Any] = {
            "other": self.other,
            "chain": list(self.chain),
            "rows": [row.plain() for row in self.rows],
            "story": self.story,
        }
        return {
            "kind": self.kind,
            **({"by": dict(self.group)} if self.group else {}),
            "node": self.node,
            **({"incarnation": self.incarnation} if self.incarnation else {}),
            "step": self.step,
            "message": self.message,
            **{name: value for name, value in optional.items() if value not in (None, [], "")},
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Violation:
        """Return the violation that `plain` describes."""
        fields = {name: value for name, value in plain.items() if name != "by"}
        fields["group"] = list(dict(plain.get("by", {})).items())
        fields["rows"] = [{"incarnation": 0, **row} for row in plain.get("rows", ())]
        return msgspec.convert({"incarnation": 0, **fields}, Violation)

    def is_about_same_row(self, other: Violation) -> bool:
        """True when both name the same rule broken by the same row."""
        names = ("kind", "node", "incarnation", "step", "message")
        return all(getattr(self, name) == getattr(other, name) for name in names)


class Part(Struct, frozen=True):
    """The verdict about one of the independent orders in one log (`--by`)."""

    group: tuple[tuple[str, str], ...]
    verdict: Answer
    deliveries_checked: int
    violations: int
    reasons: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the part as plain data: the columns that name it, then its verdict."""
        return {
            **dict(self.group),
            "verdict": self.verdict,
            "deliveries_checked": self.deliveries_checked,
            "violations": self.violations,
            **({"reasons": list(self.reasons)} if self.reasons else {}),
        }


class Verdict(Struct, frozen=True):
    """The verifier's answer about a log.

    `violations` counts every violation, `counts` by kind; `listed` holds the first hundred, and `first` is the
    only one with a story. `reasons` explain an unknown verdict. `findings` are observations that break no rule,
    `notes` say how the order was chosen or what the log cannot show. Of display order, `revisions` counts the
    messages that were inserted above others, and `moved` the messages that had been below them; else None.

    >>> import precede
    >>> verdict = precede.simulate("small-office", "unordered", seed=7).verify("causal")
    >>> verdict.verdict, verdict.deliveries_checked, verdict.counts
    ('violated', 3008, {'causal': 557})
    """

    order: Order
    verdict: Answer
    rows: int
    deliveries_checked: int
    violations: int
    first: Violation | None = None
    counts: dict[str, int] = {}
    reasons: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    listed: tuple[Violation, ...] = ()
    parts: tuple[Part, ...] = ()
    revisions: int | None = None
    moved: int | None = None

    @property
    def holds(self) -> bool:
        """True when the order is kept."""
        return self.verdict == "holds"

    def plain(self) -> dict[str, Any]:
        """Return the verdict as plain data with all keys; the first violation `listed` has an explanation."""
        return {
            "order": self.order,
            "verdict": self.verdict,
            "rows": self.rows,
            "deliveries_checked": self.deliveries_checked,
            "violations": self.violations,
            "first": None if self.first is None else self.first.plain(),
            "counts": self.counts,
            "reasons": list(self.reasons),
            "findings": list(self.findings),
            "by": [part.plain() for part in self.parts],
            "listed": [violation.plain() for violation in self._listed_with_story()],
        }

    def json(self) -> dict[str, Any]:
        """Return the object that `precede verify --json` prints. Keys after `first` are left out if empty."""
        plain = self.plain()
        del plain["listed"]
        if self.revisions is not None:
            plain |= {"revisions": self.revisions, "moved": self.moved}
        optional = ("counts", "reasons", "findings", "by")
        return {name: value for name, value in plain.items() if value or name not in optional}

    def _listed_with_story(self) -> list[Violation]:
        """Return the listed violations; the first has its story, from `first`."""
        if self.first is None:
            return list(self.listed)
        for place, violation in enumerate(self.listed):
            if violation.is_about_same_row(self.first):
                return [*self.listed[:place], self.first, *self.listed[place + 1 :]]
        return [self.first, *self.listed]


def shorten(texts: list[str]) -> tuple[str, ...]:
    """Return the first reasons or findings of many, and a line that counts the others.

    >>> shorten(["a", "b", "c", "d", "e", "f", "g"])
    ('a', 'b', 'c', 'd', 'e', 'and 2 more')
    """
    more = len(texts) - REASONS_SHOWN
    return tuple(texts if more <= 0 else [*texts[:REASONS_SHOWN], f"and {more} more"])
