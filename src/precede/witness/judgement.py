"""Runs the checks of an order over histories and puts their results together as a verdict."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from precede.witness.checks.agreement import Agreement, check_agreement
from precede.witness.checks.display import Screens, check_display
from precede.witness.checks.engine import Engine, Knots, Turns
from precede.witness.explain import (
    describe_cycle,
    explain,
    explain_disagreement,
    explain_lack,
    kind_of,
    name_ghost,
    name_violation,
)
from precede.witness.history import (
    DUPLICATE,
    EARLY,
    EXPIRED,
    GHOSTS_KEPT,
    LATE,
    MISPLACED,
    UNADDRESSED,
    History,
    Ints,
)
from precede.witness.verdict import REASONS_SHOWN, Answer, Offence, Order, Part, Verdict, Violation, shorten

LISTED: Final = 100
_PAIRED: Final = 20
"""How many of the listed violations name the other message. Each of them takes one pass over the rows."""


class Facts(Struct):
    """Facts about a whole log that its reader collected; `members` are those of a known membership."""

    rows: int
    deliveries_only: bool
    numbered: bool
    has_destinations: bool
    has_deadline: bool
    has_clock: bool
    truncated: str | None
    other_kinds: tuple[str, ...]
    members: tuple[str, ...] = ()


class Results(Struct):
    """The results of the checks over one history: marked rows, counts by kind, reasons, findings."""

    engine: Engine
    history: History
    marks: Ints
    knots: Knots | None
    counts: dict[str, int]
    reasons: list[str]
    findings: list[str]
    agreement: Agreement | None = None
    screens: Screens | None = None

    @property
    def violations(self) -> int:
        return sum(self.counts.values())


def judge(
    engine: Engine, histories: list[History], facts: Facts, order: Order, allow: bool, note: str | None
) -> Verdict:
    """Check an order in all histories of one log and return the verdict. `allow` permits duplicates."""
    results = [check_history(engine, history, facts, order, allow) for history in histories]
    deliveries = sum(history.deliveries for history in histories)
    reasons = reasons_of_log(facts, order, deliveries)
    violations = sum(one.violations for one in results)
    counts: dict[str, int] = {}
    for one in results:
        if one.history.deliveries == 0 and deliveries:
            reasons.append(f"{_group_prefix(one.history)}no deliveries at all")
        reasons += one.reasons
        for kind, count in one.counts.items():
            counts[kind] = counts.get(kind, 0) + count
    violated = next((one for one in results if one.violations), None)
    notes = [note] if note else []
    if facts.deliveries_only and deliveries:
        notes.append("the log has no broadcast rows: a delivery without a broadcast cannot be detected")
    return Verdict(
        order=order,
        verdict=answer_for(violations, reasons),
        rows=facts.rows,
        deliveries_checked=deliveries,
        violations=violations,
        first=None if violated is None else _first(violated, order),
        counts=counts,
        reasons=shorten(reasons),
        findings=shorten([finding for one in results for finding in one.findings]),
        notes=tuple(notes),
        listed=tuple(_list(results, order)),
        parts=_parts(results, order, facts) if len(results) > 1 else (),
        revisions=_sum_of("revisions", results),
        moved=_sum_of("moved", results),
    )


def _sum_of(name: str, results: Sequence[Results]) -> int | None:
    """Add a count of the screens of all histories; None if the order is not display order."""
    screens = [one.screens for one in results if one.screens is not None]
    return sum(getattr(screen, name) for screen in screens) if screens else None


def answer_for(violations: int, reasons: Sequence[str]) -> Answer:
    return "violated" if violations else "unknown" if reasons else "holds"


def reasons_of_log(facts: Facts, order: Order, deliveries: int) -> list[str]:
    """Return the reasons, from facts about the whole log, why the order cannot be decided."""
    reasons = []
    if facts.truncated:
        reasons.append(facts.truncated)
    if deliveries == 0:
        words = ", ".join(facts.other_kinds)
        hint = f" (kinds: {words}; name the log's own with --kinds)" if words else ""
        reasons.append(f"no deliveries at all{hint}")
        return reasons
    if facts.deliveries_only and order in ("causal", "multicast", "delta", "display"):
        reasons.append(
            f"the log has no broadcast rows, and {order} order depends on what a source had delivered "
            "when it broadcast (fifo and total can be decided)"
        )
    if facts.deliveries_only and order == "fifo" and not facts.numbered:
        reasons.append("without broadcast rows fifo needs message_source and message_number, not one opaque id")
    if order == "multicast" and not facts.has_destinations:
        reasons.append("multicast order needs the column destinations")
    if order == "delta" and not facts.has_deadline:
        reasons.append("delta order needs deadlines: no broadcast row has a deadline_us")
    if order == "delta" and not facts.has_clock:
        reasons.append("delta order needs the delivering node's clock: the column clock_us")
    return reasons


def check_history(engine: Engine, history: History, facts: Facts, order: Order, allow: bool) -> Results:
    """Run integrity and the checks of the order over one history."""
    marks = engine.marks(len(history.events))
    counts: dict[str, int] = {}

    def count(kind: str, number: int) -> None:
        if number:
            counts[kind] = int(number)

    # Repetitions are masked first: otherwise they would look late.
    repeated = engine.mark_repetitions(history.start, history.events, marks, engine.ints(history.messages, -1))
    count("duplicate", 0 if allow else repeated)
    if history.addresses is not None and facts.has_destinations:
        unaddressed = engine.mark_unaddressed(
            *(history.start, history.events, marks, history.source, history.node_of),
            *(history.addressed, history.address_start, history.addresses),
        )
        count("not_addressed", unaddressed)
    turns = None
    if not facts.deliveries_only:
        turns = Turns(engine, history, marks)
        count("before_broadcast", turns.broken)
    reasons = _gaps(history)
    agreement = None
    if facts.members:
        agreement = check_agreement(
            history, facts.members, bool(facts.truncated), facts.deliveries_only, LISTED
        )
        reasons += [_group_prefix(history) + reason for reason in agreement.reasons]
    reasons += _not_gathered(history, facts.members)
    count("ghost", history.ghost_count)
    knots = None
    screens = None
    if order == "total":
        knots = Knots(engine, history)
        count("total", knots.violations)
        count("agreement", 0 if agreement is None else agreement.violations)
    elif order == "fifo":
        count("fifo", _late_fifo(engine, history, facts, marks))
    elif order == "display" and turns is not None:
        screens = check_display(history, marks, turns)
        count("answer_first", screens.answers_first)
        count("answer_above", screens.answers_above)
        reasons += [_group_prefix(history) + reason for reason in screens.reasons(history)]
    elif turns is not None:
        late = engine.mark_late_causal(history, marks, turns.who, turns.until, turns.count)
        count("multicast" if order == "multicast" else "causal", late)
    if order == "delta" and facts.has_deadline and facts.has_clock:
        count("expired", engine.mark_expired(history.events, marks, history.clock, history.deadline))
        if history.clock_missing:
            reasons.append(f"{_group_prefix(history)}a delivered row has no clock_us")
    if allow:
        engine.clear(marks, DUPLICATE)
    findings = []
    if knots is not None and knots.cycle:
        findings.append(_group_prefix(history) + describe_cycle(history, knots.cycle))
    return Results(engine, history, marks, knots, counts, reasons, findings, agreement, screens)


def _not_gathered(history: History, members: Sequence[str]) -> list[str]:
    """Return, for each source without rows, a reason why the order cannot be decided, if no members are known.

    With known members, this counts the messages of nodes that are no members as deliveries without a broadcast.
    """
    reasons = []
    for node, missing in history.ungathered.items():
        if members and node not in members:
            history.ghost_count += missing.count
            history.ghosts += missing.first[: GHOSTS_KEPT - len(history.ghosts)]
        elif not members:
            reasons.append(_group_prefix(history) + describe_ungathered(node, missing.count))
    history.ghosts.sort(key=lambda ghost: (ghost.process, ghost.step))
    return reasons


def _late_fifo(engine: Engine, history: History, facts: Facts, marks: Ints) -> int:
    if facts.deliveries_only and not facts.numbered:
        return 0
    processes = history.processes
    return engine.mark_late_fifo(
        history.start, history.events, marks, history.source, engine.ints(processes), engine.ints(processes, -1)
    )


def _gaps(history: History) -> list[str]:
    """Return, for each gap in the steps of a history, the reason why its order cannot be decided."""
    reasons = []
    for gap in history.gaps[: REASONS_SHOWN + 1]:
        process = history.process_name(gap.process)
        reasons.append(_group_prefix(history) + describe_gap(process, gap.last, gap.next))
    return reasons


def describe_gap(process: str, last: int | None, after: int) -> str:
    """Return the reason that a gap in the steps of a process is."""
    hint = "rows are missing (or steps do not count rows: --steps ordered)"
    if last is None:
        return f"node {process} begins at step {after}: {hint}"
    return f"node {process} goes from step {last} to step {after}: {hint}"


def describe_ungathered(node: str, deliveries: int) -> str:
    rows = f"node {node} has no rows, but {deliveries} deliveries of its messages are in the log"
    return f"{rows}: was its own log gathered?"


def _list(results: Sequence[Results], order: Order) -> list[Violation]:
    """List the first violations of all histories, at most `LISTED`."""
    listed: list[Violation] = []
    for one in results:
        if len(listed) >= LISTED:
            break
        if not one.violations:
            continue
        history = one.history
        listed += [name_ghost(history, ghost) for ghost in history.ghosts]
        for event in _marked(one, LISTED):
            mark = int(one.marks[event])
            for kind in _kinds(mark, order):
                violation = name_violation(history, event, kind)
                if len(listed) < _PAIRED:
                    violation = replace(violation, other=explain(one.engine, history, event, kind).other)
                listed.append(violation)
        if one.knots is not None:
            listed += [name_violation(history, pair[3], "total") for pair in one.knots.pairs[:LISTED]]
        if one.agreement is not None:
            listed += [explain_lack(history, lack) for lack in one.agreement.lacks]
    return listed[:LISTED]


def _first(results: Results, order: Order) -> Violation:
    """Return the first violation by process and row, with its story; total order and agreement come last."""
    engine, history = results.engine, results.history
    marked = _marked(results, 1)
    if history.ghosts:
        ghost = history.ghosts[0]
        if not marked or ghost.process <= history.process_of(marked[0]):
            return name_ghost(history, ghost)
    if marked:
        return explain(engine, history, marked[0], kind_of(int(results.marks[marked[0]]), order))
    if results.knots is not None and results.knots.pairs:
        return explain_disagreement(engine, history, results.knots.pairs[0])
    assert results.agreement is not None
    return explain_lack(history, results.agreement.lacks[0])


def _marked(results: Results, most: int) -> list[int]:
    return [int(event) for event in results.engine.marked(results.marks, most)]


def _kinds(mark: int, order: Order) -> list[Offence]:
    return [
        kind_of(bit, order) for bit in (DUPLICATE, EARLY, UNADDRESSED, LATE, EXPIRED, MISPLACED) if mark & bit
    ]


def _parts(results: Sequence[Results], order: Order, facts: Facts) -> tuple[Part, ...]:
    parts = []
    for one in results:
        reasons = [*reasons_of_log(facts, order, one.history.deliveries), *one.reasons]
        parts.append(
            Part(
                group=one.history.group,
                verdict=answer_for(one.violations, reasons),
                deliveries_checked=one.history.deliveries,
                violations=one.violations,
                reasons=shorten(reasons),
            )
        )
    return tuple(parts)


def _group_prefix(history: History) -> str:
    """Return the columns that name an independent order, as the beginning of a reason; `run_id` is left out."""
    return "".join(f"{name}={value}, " for name, value in history.group if name != "run_id")
