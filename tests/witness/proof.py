"""A checker of explanations: do the rows that a violation shows prove it, whatever else happened?

It looks at the shown rows alone, and at the whole log only for what rows cannot show: that each of them is
really in the log, that something is absent, and the deadlines, clocks and destinations that a row has there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from precede.witness.verdict import Row, Violation
from tests.witness.second_witness import message_of


def proves(violation: Violation, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the rows of an explanation are in the log and prove the violation."""
    log = {(row["node"], row.get("incarnation") or 0, row["step"]): row for row in rows}
    full = [log.get((row.node, row.incarnation, row.step)) for row in violation.rows]
    if not violation.rows or any(row is None for row in full):
        return False
    if any(not _is_same(shown, row) for shown, row in zip(violation.rows, full, strict=True) if row):
        return False
    shown = list(violation.rows)
    last = shown[-1]
    if violation.kind not in ("agreement", "total", "before_broadcast") and not _is_blamed(violation, last):
        return False
    if violation.kind in ("fifo", "causal", "multicast"):
        by_number = violation.kind == "fifo" and all(row["kind"] != "broadcast" for row in rows)
        return _is_late(violation, shown, by_number)
    if violation.kind == "duplicate":
        return len(shown) == 2 and _process(shown[0]) == _process(last) and shown[0].step < last.step
    if violation.kind == "total":
        return _disagree(shown)
    if violation.kind == "before_broadcast":
        return _comes_before(violation, shown)
    if violation.kind == "expired":
        return any(row["clock_us"] > origin["deadline_us"] for origin, row in [full] if row and origin)
    if violation.kind == "not_addressed":
        return any(last.node not in origin["destinations"] for origin in full[:1] if origin)
    about = _named(rows, violation.message)
    if violation.kind == "ghost":
        return all(row["kind"] != "broadcast" for row in about)
    delivered_there = [row for row in about if row["kind"] == "delivered" and row["node"] == violation.node]
    return violation.kind == "agreement" and not delivered_there and last.node != violation.node


def _is_same(shown: Row, row: Mapping[str, Any]) -> bool:
    return shown.event == row["kind"] and shown.message == _name(row)


def _name(row: Mapping[str, Any]) -> str:
    source, incarnation, number = message_of(row)
    return f"{source}'{incarnation}:{number}" if incarnation else f"{source}:{number}"


def _named(rows: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["kind"] != "other" and _name(row) == name]


def _is_blamed(violation: Violation, row: Row) -> bool:
    return (row.node, row.incarnation, row.step, row.message, row.event) == (
        *(violation.node, violation.incarnation, violation.step, violation.message),
        "delivered",
    )


def _process(row: Row) -> tuple[str, int]:
    return row.node, row.incarnation


def _knew_before(shown: Sequence[Row], first: str, then: str) -> bool:
    """Return whether a shown row proves that the source of `then` had broadcast or delivered `first`."""
    return any(
        one.message == first
        and other.message == then
        and other.event == "broadcast"
        and _process(one) == _process(other)
        and one.step < other.step
        for one in shown
        for other in shown
    )


def _is_late(violation: Violation, shown: Sequence[Row], by_number: bool) -> bool:
    """`by_number`: the log has no broadcast rows, so that the numbers of the messages are the proof."""
    chain = violation.chain
    *_, earlier, late = shown
    links = all(_knew_before(shown, *pair) for pair in pairwise(chain))
    if by_number:
        (source, number), (other, higher) = (name.split(":") for name in chain)
        links = source == other and int(number) < int(higher)
    return (
        len(chain) > 1
        and links
        and (chain[0], chain[-1]) == (late.message, earlier.message)
        and earlier.event == "delivered"
        and _process(earlier) == _process(late)
        and earlier.step < late.step
        and (violation.kind != "fifo" or len(chain) == 2)
    )


def _disagree(shown: Sequence[Row]) -> bool:
    if len(shown) != 4:
        return False
    a, b, c, d = shown
    return (
        all(row.event == "delivered" for row in shown)
        and _process(a) == _process(b) != _process(c) == _process(d)
        and (a.message, b.message) == (d.message, c.message)
        and a.step < b.step
        and c.step < d.step
    )


def _comes_before(violation: Violation, shown: Sequence[Row]) -> bool:
    """From the blamed delivery to the broadcast: each row before the next, in its process or by its message."""
    first, last = shown[0], shown[-1]
    follows = all(
        (_process(one) == _process(other) and one.step < other.step)
        or (one.event == "broadcast" and other.event == "delivered" and one.message == other.message)
        for one, other in pairwise(shown)
    )
    return (
        _is_blamed(violation, first)
        and follows
        and len(shown) > 1
        and (last.event, last.message) == ("broadcast", violation.message)
    )
