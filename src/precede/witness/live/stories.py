"""Explains violations that the live verifier finds, step by step, from the log rows read so far."""

from __future__ import annotations

from itertools import pairwise

from precede.core.instants import format_duration
from precede.witness.explain import listing, quoted
from precede.witness.live.state import LiveRow, LiveState, Process
from precede.witness.verdict import Offence, Row, Violation


class Stories:
    """Explains the violations of one run: each method returns the violation with its rows and its story."""

    def __init__(self, state: LiveState) -> None:
        self.state = state

    def ghost(self, process: Process, row: LiveRow) -> Violation:
        story = f"delivered {quoted(row.message)} at step {row.step}, but nobody broadcast it."
        return _violation(process, row, "ghost", story)

    def too_early(self, process: Process, row: LiveRow) -> Violation:
        story = f"delivered {quoted(row.message)} before it can have been broadcast."
        return _violation(process, row, "before_broadcast", story)

    def duplicate(self, p: int, message: int | None, row: LiveRow) -> Violation:
        """Explain a delivery of a message that the process delivered before.

        The earlier row is shown unless it preceded the broadcast, or the message is forgotten.
        """
        process = self.state.processes[p]
        earlier: tuple[Row, ...] = ()
        if message is not None and self.state.delivered_at(p, message):
            earlier = (self._delivered(p, message),)
        story = f"delivered {quoted(row.message)} twice."
        return _violation(process, row, "duplicate", story, (*earlier, _row(process, row)))

    def not_addressed(self, process: Process, message: int, row: LiveRow) -> Violation:
        to = ", ".join(self.state.messages[message].to or ()) or "nobody"
        story = f"delivered {quoted(row.message)}, which was addressed to {to} only."
        return _violation(process, row, "not_addressed", story, (self._broadcast(message), _row(process, row)))

    def expired(self, process: Process, message: int, row: LiveRow, deadline: int) -> Violation:
        """Explain a delivery after the message's deadline."""
        assert row.clock is not None
        story = (
            f"delivered {quoted(row.message)} {format_duration(row.clock - deadline)} after its deadline "
            f"(deadline {deadline} us, the node's clock {row.clock} us)."
        )
        return _violation(process, row, "expired", story, (self._broadcast(message), _row(process, row)))

    def forgotten(self, process: Process, row: LiveRow, kind: Offence) -> Violation:
        """Explain a violation by the delivery of a message that is forgotten, without the earlier rows."""
        how = {
            "not_addressed": "which was not addressed to it",
            "expired": "after its deadline",
        }.get(kind, "after a message that it precedes")
        return _violation(process, row, kind, f"delivered {quoted(row.message)} {how}.")

    def disagreement(self, p: int, q: int, message: int, row: LiveRow) -> Violation:
        """Explain that process q delivered the message before one that process p delivered earlier."""
        state = self.state
        at = state.delivered_at(q, message)
        later = (m for _, m in state.deliveries_of(p) if state.delivered_at(q, m) > at)
        other = min(later, default=None)
        if other is None:
            story = (
                f"delivered {quoted(row.message)} after a message that is forgotten; "
                f"node {state.processes[q].name} delivered it before that one."
            )
            seen = (_row(state.processes[p], row), self._delivered(q, message))
            return _violation(state.processes[p], row, "total", story, seen)
        first, second = quoted(state.message_name(other)), quoted(row.message)
        story = (
            f"delivered {first} before {second}; "
            f"node {state.processes[q].name} delivered {second} before {first}."
        )
        rows = (
            *(self._delivered(p, other), _row(state.processes[p], row)),
            *(self._delivered(q, message), self._delivered(q, other)),
        )
        return _violation(state.processes[p], row, "total", story, rows, other=state.message_name(other))

    def lack(self, p: int, q: int, message: int) -> Violation:
        """Explain that process p never delivered a message that process q delivered."""
        process, row, name = (
            self.state.processes[p],
            self._delivered(q, message),
            self.state.message_name(message),
        )
        story = f"{self.state.processes[q].name} delivered {quoted(name)}; {process.name} never did."
        return Violation(
            kind="agreement",
            node=process.node,
            incarnation=process.incarnation,
            step=process.expected - 1,
            message=name,
            rows=(row,),
            story=f"{story}\n{listing((row,), {})}",
        )

    def late(self, p: int, message: int, row: LiveRow, kind: Offence, with_chain: bool) -> Violation:
        """Explain a late delivery: process p delivered before it a message that depends on it.

        With `with_chain`, the explanation has the causal chain between the two messages and the rows that prove
        it.
        """
        state, process = self.state, self.state.processes[p]
        chain = self._chain(p, message, row.step) if with_chain else []
        if not chain:
            story = f"delivered {quoted(row.message)} after a message that it precedes."
            return _violation(process, row, kind, story)
        names = [state.message_name(m) for m in chain]
        shown = [quoted(name) for name in names]
        rows: list[Row] = []
        remarks: dict[int, str] = {}
        for at, (before, after) in enumerate(pairwise(chain)):
            rows.append(self._broadcast(before))
            source = state.messages[after].source
            if state.messages[before].source != source:
                rows.append(self._delivered(source, before))
            remarks[len(rows)] = f"so {shown[at]} -> {shown[at + 1]}"
        rows += [self._broadcast(chain[-1]), self._delivered(p, chain[-1]), _row(process, row)]
        remarks[len(rows) - 1] = "too late"
        story = f"delivered {shown[-1]} before {shown[0]}, but {' -> '.join(shown)}."
        return _violation(process, row, kind, story, tuple(rows), remarks, names[-1], tuple(names))

    def _chain(self, p: int, message: int, step: int) -> list[int]:
        """Find a causal chain from the message to one that process p delivered before a step.

        Returns an empty list if a message between them is forgotten.
        """
        messages = self.state.messages
        last = self._first_after(p, step, message)
        chain: list[int] = []
        while last is not None:
            chain.insert(0, last)
            if last == message:
                return chain
            source = messages[last].source
            if source == messages[message].source:
                return [message, *chain]
            last = self._first_after(source, messages[last].born, message)
        return []

    def _first_after(self, p: int, step: int, message: int) -> int | None:
        """Return the first message that p delivered before a step and that depends on `message` or is it."""
        deliveries = sorted(each for each in self.state.deliveries_of(p) if each[0] <= step)
        return next((m for _, m in deliveries if m == message or self._precedes(message, m)), None)

    def _precedes(self, message: int, other: int) -> bool:
        source, rank = self.state.messages[message].source, self.state.messages[message].rank
        after = self.state.messages[other]
        if after.source == source:
            return after.rank > rank
        return any(s == source and last >= rank for s, last in after.entries())

    def _broadcast(self, message: int) -> Row:
        node, incarnation, _ = self.state.key_of(message)
        return Row(
            node, incarnation, self.state.messages[message].born, "broadcast", self.state.message_name(message)
        )

    def _delivered(self, p: int, message: int) -> Row:
        process, step = self.state.processes[p], self.state.delivered_at(p, message) - 1
        return Row(process.node, process.incarnation, step, "delivered", self.state.message_name(message))


def _violation(
    process: Process,
    row: LiveRow,
    kind: Offence,
    story: str,
    rows: tuple[Row, ...] = (),
    remarks: dict[int, str] | None = None,
    other: str | None = None,
    chain: tuple[str, ...] = (),
) -> Violation:
    """Return the violation by a row of a process. `story` continues a sentence that begins "Node a"."""
    rows = rows or (_row(process, row),)
    return Violation(
        kind=kind,
        node=process.node,
        incarnation=process.incarnation,
        step=row.step,
        message=row.message,
        other=other,
        chain=chain,
        rows=rows,
        story=f"Node {process.name} {story}\n{listing(rows, remarks or {})}",
    )


def _row(process: Process, row: LiveRow) -> Row:
    return Row(process.node, process.incarnation, row.step, "delivered", row.message)
