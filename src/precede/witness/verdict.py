"""What the witness says: a verdict, the violations it rests on, the rows that prove them (DESIGN section 6)."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

Order: TypeAlias = Literal["fifo", "causal", "multicast", "delta", "total"]
Answer: TypeAlias = Literal["holds", "violated", "unknown"]
Duplicates: TypeAlias = Literal["forbid", "allow"]
Steps: TypeAlias = Literal["counted", "ordered"]

ORDERS: Final[tuple[Order, ...]] = ("fifo", "causal", "multicast", "delta", "total")

Offence: TypeAlias = Literal[
    "ghost", "before_broadcast", "duplicate", "not_addressed", "fifo", "causal", "multicast", "expired", "total"
]


class Row(Struct, frozen=True):
    """One row of the log, as evidence."""

    node: str
    incarnation: int
    step: int
    event: Literal["broadcast", "delivered"]
    message: str

    def json(self) -> dict[str, Any]:
        life = {"incarnation": self.incarnation} if self.incarnation else {}
        return {"node": self.node, **life, "step": self.step, "event": self.event, "message": self.message}


class Violation(Struct, frozen=True):
    """One delivery that breaks a rule. `other` is the message it should have come before (or disagrees about).

    `chain` is m -> ... -> m' for a causal violation; `rows` are the rows that prove it, `story` tells them.

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

    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"kind": self.kind}
        if self.group:
            told["by"] = dict(self.group)
        told["node"] = self.node
        if self.incarnation:
            told["incarnation"] = self.incarnation
        told["step"] = self.step
        told["message"] = self.message
        if self.other is not None:
            told["other"] = self.other
        if self.chain:
            told["chain"] = list(self.chain)
        if self.rows:
            told["rows"] = [row.json() for row in self.rows]
        if self.story:
            told["story"] = self.story
        return told


class Part(Struct, frozen=True):
    """The verdict about one of many independent orders in one log (`--by`)."""

    group: tuple[tuple[str, str], ...]
    verdict: Answer
    deliveries_checked: int
    violations: int
    reasons: tuple[str, ...] = ()


class Verdict(Struct, frozen=True):
    """The witness's answer about a log.

    `violations` counts every breach; `listed` holds the first of them, and only `first` is told as a story.
    `reasons` say why a verdict is unknown; `findings` are worth knowing and break nothing.

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

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    def json(self) -> dict[str, Any]:
        """The object that `precede verify --json` prints; keys after `first` are there when needed."""
        told: dict[str, Any] = {
            "order": self.order,
            "verdict": self.verdict,
            "rows": self.rows,
            "deliveries_checked": self.deliveries_checked,
            "violations": self.violations,
            "first": None if self.first is None else self.first.json(),
        }
        if self.counts:
            told["counts"] = self.counts
        if self.reasons:
            told["reasons"] = list(self.reasons)
        if self.findings:
            told["findings"] = list(self.findings)
        if self.parts:
            told["by"] = [_part(part) for part in self.parts]
        return told


def _part(part: Part) -> dict[str, Any]:
    told: dict[str, Any] = {
        **dict(part.group),
        "verdict": part.verdict,
        "deliveries_checked": part.deliveries_checked,
        "violations": part.violations,
    }
    return told | ({"reasons": list(part.reasons)} if part.reasons else {})
