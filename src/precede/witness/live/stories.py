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

        The earlier row is shown unless it preceded the broadcast: such a row is not kept.
        """
        process, delivered = self.state.processes[p], self.state.delivered[p]
        earlier: tuple[Row, ...] = ()
        if message is not None and message < len(delivered) and delivered[message]:
            earlier = (self._delivered(p, message),)
        story = f"delivered {quoted(row.message)} twice."
        return _violation(process, row, "duplicate", story, (*earlier, _row(process, row)))

    def not_addressed(self, process: Process, message: int, row: LiveRow) -> Violation:
        to = ", ".join(self.state.to[message]) or "nobody"
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

    def disagreement(self, p: int, q: int, message: int, row: LiveRow) -> Violation:
        """Explain that process q delivered the message before one that process p delivered earlier."""
        state = self.state
        mine, theirs = state.delivered[p], state.delivered[q]
        both = range(min(len(mine), len(theirs)))
        other = next(m for m in both if mine[m] and theirs[m] > theirs[message])
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
        """Explain a delivery after one of a message that depends on it; `with_chain`, also the causal chain."""
        state, process = self.state, self.state.processes[p]
        if not with_chain:
            story = f"delivered {quoted(row.message)} after a message that it precedes."
            return _violation(process, row, kind, story)
        chain = self._chain(p, message, row.step)
        names = [state.message_name(m) for m in chain]
        shown = [quoted(name) for name in names]
        rows: list[Row] = []
        remarks: dict[int, str] = {}
        for at, (before, after) in enumerate(pairwise(chain)):
            rows.append(self._broadcast(before))
            source = state.source[after]
            if state.source[before] != source:
                rows.append(self._delivered(source, before))
            remarks[len(rows)] = f"so {shown[at]} -> {shown[at + 1]}"
        rows += [self._broadcast(chain[-1]), self._delivered(p, chain[-1]), _row(process, row)]
        remarks[len(rows) - 1] = "too late"
        story = f"delivered {shown[-1]} before {shown[0]}, but {' -> '.join(shown)}."
        return _violation(process, row, kind, story, tuple(rows), remarks, names[-1], tuple(names))

    def _chain(self, p: int, message: int, step: int) -> list[int]:
        """Find a causal chain from the message to one that process p delivered before a step."""
        chain = [self._first_after(p, step, message)]
        while chain[0] != message:
            after = chain[0]
            source = self.state.source[after]
            if source == self.state.source[message]:
                chain.insert(0, message)
            else:
                chain.insert(0, self._first_after(source, self.state.born[after], message))
        return chain

    def _first_after(self, p: int, step: int, message: int) -> int:
        """Return the first message that p delivered before a step and that depends on `message` or is it."""
        deliveries = sorted((at, m) for m, at in enumerate(self.state.delivered[p]) if 0 < at <= step)
        return next(m for _, m in deliveries if m == message or self._precedes(message, m))

    def _precedes(self, message: int, other: int) -> bool:
        state = self.state
        source, rank = state.source[message], state.rank[message]
        if state.source[other] == source:
            return state.rank[other] > rank
        entries = state.past[state.past_start[other] : state.past_start[other + 1]]
        return any(s == source and last >= rank for s, last in zip(entries[::2], entries[1::2], strict=True))

    def _broadcast(self, message: int) -> Row:
        node, incarnation, _ = self.state.key_of(message)
        return Row(node, incarnation, self.state.born[message], "broadcast", self.state.message_name(message))

    def _delivered(self, p: int, message: int) -> Row:
        process, step = self.state.processes[p], self.state.delivered[p][message] - 1
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
