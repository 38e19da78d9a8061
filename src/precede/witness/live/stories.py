"""Why a delivery is a violation, told while the run goes on, from what the live witness has counted so far."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from precede.core.instants import format_duration
from precede.witness.explain import listing, quoted
from precede.witness.history import name_message
from precede.witness.verdict import Offence, Row, Violation

if TYPE_CHECKING:
    from precede.witness.live.live import LiveRow, LiveRun, Process


class Teller:
    """The stories of one run's violations."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run

    def ghost(self, process: Process, row: LiveRow) -> Violation:
        who, what = self.run.who(process), quoted(_name(row))
        return self._told(
            process, row, "ghost", f"Node {who} delivered {what} at step {row.step}, but nobody broadcast it."
        )

    def too_early(self, process: Process, row: LiveRow) -> Violation:
        who, what = self.run.who(process), quoted(_name(row))
        return self._told(
            process, row, "before_broadcast", f"Node {who} delivered {what} before it can have been broadcast."
        )

    def duplicate(self, p: int, message: int, row: LiveRow) -> Violation:
        process = self.run.processes[p]
        before = self.run.delivered[p][message]
        rows = (self._delivered(p, message),) if before else ()
        story = f"Node {self.run.who(process)} delivered {quoted(_name(row))} twice."
        return self._told(process, row, "duplicate", story, (*rows, _row(process, row)))

    def not_addressed(self, process: Process, message: int, row: LiveRow) -> Violation:
        to = ", ".join(self.run.to[message]) or "nobody"
        who, what = self.run.who(process), quoted(_name(row))
        story = f"Node {who} delivered {what}, which was addressed to {to} only."
        return self._told(process, row, "not_addressed", story, (self._broadcast(message), _row(process, row)))

    def expired(self, process: Process, message: int, row: LiveRow, deadline: int) -> Violation:
        assert row.clock is not None
        story = (
            f"Node {self.run.who(process)} delivered {quoted(_name(row))} "
            f"{format_duration(row.clock - deadline)} after its deadline (deadline {deadline} us, the node's "
            f"clock {row.clock} us)."
        )
        return self._told(process, row, "expired", story, (self._broadcast(message), _row(process, row)))

    def disagreement(self, p: int, q: int, message: int, row: LiveRow) -> Violation:
        """Process q delivered the message before one that p delivered before it."""
        run = self.run
        mine, theirs = run.delivered[p], run.delivered[q]
        both = range(min(len(mine), len(theirs)))
        other = next(m for m in both if mine[m] and theirs[m] > theirs[message])
        one, two = run.processes[p], run.processes[q]
        names = quoted(name_message(*run.key_of(other))), quoted(_name(row))
        story = (
            f"Node {run.who(one)} delivered {names[0]} before {names[1]}; "
            f"node {run.who(two)} delivered {names[1]} before {names[0]}."
        )
        rows = (
            *(self._delivered(p, other), _row(one, row)),
            *(self._delivered(q, message), self._delivered(q, other)),
        )
        return self._told(one, row, "total", story, rows, name_message(*run.key_of(other)))

    def late(self, p: int, message: int, row: LiveRow, kind: Offence, in_full: bool) -> Violation:
        """The chain from the message to the first delivered one that it precedes, and the rows that link it."""
        process = self.run.processes[p]
        who = self.run.who(process)
        if not in_full:
            story = f"Node {who} delivered {quoted(_name(row))} after a message that it precedes."
            return self._told(process, row, kind, story)
        chain = self._chain(p, message, row.step)
        names = [name_message(*self.run.key_of(m)) for m in chain]
        shown = [quoted(name) for name in names]
        rows: list[Row] = []
        remarks: dict[int, str] = {}
        for at, (before, after) in enumerate(pairwise(chain)):
            rows.append(self._broadcast(before))
            source = self.run.source[after]
            if self.run.source[before] != source:
                rows.append(self._delivered(source, before))
            remarks[len(rows)] = f"so {shown[at]} -> {shown[at + 1]}"
        rows += [self._broadcast(chain[-1]), self._delivered(p, chain[-1]), _row(process, row)]
        remarks[len(rows) - 1] = "too late"
        story = f"Node {who} delivered {shown[-1]} before {shown[0]}, but {' -> '.join(shown)}."
        told = f"{story}\n{listing(rows, remarks)}"
        return _violation(process, row, kind, told, tuple(rows), names[-1], tuple(names))

    def _chain(self, p: int, message: int, step: int) -> list[int]:
        """m -> ... -> m': each known to the source of the next when that was broadcast; m' delivered at p."""
        chain = [self._first_after(p, step, message)]
        while chain[0] != message:
            after = chain[0]
            source = self.run.source[after]
            if source == self.run.source[message]:
                chain.insert(0, message)
            else:
                chain.insert(0, self._first_after(source, self.run.born[after], message))
        return chain

    def _first_after(self, p: int, step: int, message: int) -> int:
        """The first thing that p delivered, before a step, which is the message or comes after it."""
        mine = self.run.delivered[p]
        found = sorted((at, m) for m, at in enumerate(mine) if 0 < at <= step)
        return next(m for _, m in found if m == message or self._precedes(message, m))

    def _precedes(self, message: int, other: int) -> bool:
        run = self.run
        source, rank = run.source[message], run.rank[message]
        if run.source[other] == source:
            return run.rank[other] > rank
        entries = run.past[run.past_start[other] : run.past_start[other + 1]]
        return any(s == source and last >= rank for s, last in zip(entries[::2], entries[1::2], strict=True))

    def _broadcast(self, message: int) -> Row:
        node, life, number = self.run.key_of(message)
        return Row(node, life, self.run.born[message], "broadcast", name_message(node, life, number))

    def _delivered(self, p: int, message: int) -> Row:
        process, name = self.run.processes[p], name_message(*self.run.key_of(message))
        return Row(process.node, process.life, self.run.delivered[p][message] - 1, "delivered", name)

    def _told(
        self,
        process: Process,
        row: LiveRow,
        kind: Offence,
        story: str,
        rows: tuple[Row, ...] = (),
        other: str | None = None,
    ) -> Violation:
        rows = rows or (_row(process, row),)
        return _violation(process, row, kind, f"{story}\n{listing(rows, {})}", rows, other)


def _violation(
    process: Process,
    row: LiveRow,
    kind: Offence,
    story: str,
    rows: tuple[Row, ...],
    other: str | None = None,
    chain: tuple[str, ...] = (),
) -> Violation:
    return Violation(
        kind=kind,
        node=process.node,
        incarnation=process.life,
        step=row.step,
        message=_name(row),
        other=other,
        chain=chain,
        rows=rows,
        story=story,
    )


def _row(process: Process, row: LiveRow) -> Row:
    return Row(process.node, process.life, row.step, "delivered", _name(row))


def _name(row: LiveRow) -> str:
    return name_message(row.source, row.life, row.number)
