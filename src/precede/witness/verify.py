"""The witness: from a log to a verdict (DESIGN section 6; the definitions are in docs/concepts/orders.md).

It sees broadcast and delivered rows and each node's own order of them; Δ adds deadlines and local clocks. It
knows no protocol. A breach that rows prove is *violated*, whatever else is missing; else what is missing makes
it *unknown*; else it *holds*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from msgspec import Struct

from precede.core.errors import BadInput
from precede.witness.checks.engine import Engine, Knots, Turns
from precede.witness.explain import kind_of, name_ghost, name_violation, tell, tell_cycle, tell_disagreement
from precede.witness.history import (
    DUPLICATE,
    EARLY,
    EXPIRED,
    LATE,
    UNADDRESSED,
    History,
    Ints,
)
from precede.witness.reading.column_names import KNOWN, Layout, read_by, read_kinds, read_mapping, settle
from precede.witness.reading.logs import Log, open_log
from precede.witness.reading.plain import PlainBuilder
from precede.witness.verdict import ORDERS, Duplicates, Order, Part, Steps, Verdict, Violation

LISTED: Final = 100
_REASONS_SHOWN: Final = 5
_COMPILED: Final = "precede.witness.checks.numba_engine"


class Facts(Struct):
    """What was learnt about a log while it was read."""

    rows: int
    deliveries_only: bool
    numbered: bool
    has_destinations: bool
    has_deadline: bool
    has_clock: bool
    truncated: str | None
    other_kinds: tuple[str, ...]
    steps_counted: bool


class Found(Struct):
    """What the checks found in one history."""

    engine: Engine
    history: History
    marks: Ints
    knots: Knots | None
    counts: dict[str, int]
    reasons: list[str]
    findings: list[str]

    @property
    def violations(self) -> int:
        return sum(self.counts.values())


def verify(
    source: Any,
    order: str | None = None,
    *,
    columns: str | Mapping[str, str] | None = None,
    by: str | Sequence[str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    steps: str = "counted",
    duplicates: str = "forbid",
    compiled: bool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verdict:
    """Does this log keep its order?

    `source` is a path (CSV, JSON lines, Parquet, a run's directory), an Arrow table, a pandas frame or rows as
    mappings. `order` is what run.json promises, else causal, when nobody says. `columns` maps our column names
    to the log's, `by` names the columns that split it into independent orders, `kinds` the words that mean
    broadcast and delivered. `steps="ordered"` says that steps order rows without counting them, so that a hole
    is no gap. `compiled` forces or forbids the compiled checks, which large logs use. Raises BadInput.
    """
    _check_choice("order", order, (*ORDERS, None))
    _check_choice("steps", steps, get_args(Steps))
    _check_choice("duplicates", duplicates, get_args(Duplicates))
    log = open_log(source)
    settled, note = _settle_order(order, log.promised)
    layout = settle(
        log.names, log.name, read_mapping(columns, "--columns", KNOWN), read_by(by), read_kinds(kinds)
    )
    if settled != "delta":
        layout = layout.without("deadline_us", "clock_us")
    engine, histories, facts = _read(log, layout, steps == "counted", compiled, progress)
    return _judge_all(engine, histories, facts, settled, duplicates == "allow", note)


def _check_choice(name: str, value: str | None, choices: Sequence[str | None]) -> None:
    if value not in choices:
        known = ", ".join(choice for choice in choices if choice)
        raise BadInput(f"{name}: {value!r} is none of {known}")


def _settle_order(asked: str | None, promised: str | None) -> tuple[Order, str | None]:
    """The order to check, and what to say about the choice."""
    for order in ORDERS:
        if asked == order:
            return order, None
        if asked is None and promised == order:
            return order, f"the run promises {order} order"
    return "causal", None if promised is None or asked else "the run promises no order; causal was checked"


def _read(
    log: Log,
    layout: Layout,
    counted: bool,
    compiled: bool | None,
    progress: Callable[[int], None] | None,
) -> tuple[Engine, list[History], Facts]:
    """The log as histories, with the engine that fits its size."""
    builder: Any
    if _use_compiled(log, compiled):
        from precede.witness.checks.numba_engine import CompiledEngine
        from precede.witness.reading.arrays import ArrayBuilder

        engine: Engine = CompiledEngine()
        builder = ArrayBuilder(layout, log, counted)
    else:
        engine = Engine()
        builder = PlainBuilder(layout, log, counted)
    try:
        histories = builder.read(progress)
    except UnicodeDecodeError as error:
        raise BadInput(f"{log.name}, after row {builder.rows}: not UTF-8 text ({error.reason})") from None
    if builder.rows == 0:
        raise BadInput(f"{log.name}: is empty (no rows)")
    facts = Facts(
        rows=builder.rows,
        deliveries_only=builder.deliveries_only,
        numbered=layout.numbered,
        has_destinations="destinations" in layout.columns and log.seen(layout.columns["destinations"]),
        has_deadline=builder.has_deadline,
        has_clock="clock_us" in layout.columns and log.seen(layout.columns["clock_us"]),
        truncated=log.truncated,
        other_kinds=tuple(builder.other_kinds),
        steps_counted=counted and not layout.row_order,
    )
    return engine, histories, facts


def _use_compiled(log: Log, compiled: bool | None) -> bool:
    if compiled is not None:
        return compiled
    if not log.large:
        return False
    from importlib.util import find_spec

    return all(find_spec(module) is not None for module in ("numpy", "pyarrow", "numba"))


def _judge_all(
    engine: Engine, histories: list[History], facts: Facts, order: Order, allow: bool, note: str | None
) -> Verdict:
    found = [_check(engine, history, facts, order, allow) for history in histories]
    deliveries = sum(history.deliveries for history in histories)
    reasons = _reasons_of_log(facts, order, deliveries)
    violations = sum(one.violations for one in found)
    for one in found:
        if one.history.deliveries == 0 and deliveries:
            reasons.append(f"{_where(one.history)}no deliveries at all")
        reasons += one.reasons
    counts: dict[str, int] = {}
    for one in found:
        for kind, count in one.counts.items():
            counts[kind] = counts.get(kind, 0) + count
    listed = _list(found, order)
    guilty = next((one for one in found if one.violations), None)
    notes = [note] if note else []
    if facts.deliveries_only and deliveries:
        notes.append("the log has deliveries only, so nobody can say whether all of them were broadcast")
    return Verdict(
        order=order,
        verdict="violated" if violations else "unknown" if reasons else "holds",
        rows=facts.rows,
        deliveries_checked=deliveries,
        violations=violations,
        first=None if guilty is None else _first(guilty, order),
        counts=counts,
        reasons=_shorten(reasons),
        findings=_shorten([finding for one in found for finding in one.findings]),
        notes=tuple(notes),
        listed=tuple(listed),
        parts=_parts(found, order, facts) if len(found) > 1 else (),
    )


def _reasons_of_log(facts: Facts, order: Order, deliveries: int) -> list[str]:
    """Why the whole log cannot be judged, if nothing in it is violated."""
    reasons = []
    if facts.truncated:
        reasons.append(facts.truncated)
    if deliveries == 0:
        words = ", ".join(facts.other_kinds)
        reasons.append("no deliveries at all" + (f" (kinds: {words}; --kinds names yours)" if words else ""))
        return reasons
    if facts.deliveries_only and order in ("causal", "multicast", "delta"):
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


def _check(engine: Engine, history: History, facts: Facts, order: Order, allow: bool) -> Found:
    """All that the order asks, over one history."""
    marks = engine.marks(len(history.events))
    counts: dict[str, int] = {}

    def count(kind: str, number: int) -> None:
        if number:
            counts[kind] = int(number)

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
    count("ghost", history.ghost_count)
    knots = None
    if order == "total":
        knots = Knots(engine, history)
        count("total", knots.violations)
    elif order == "fifo":
        count("fifo", _late_fifo(engine, history, facts, marks))
    elif turns is not None:
        late = engine.mark_late_causal(history, marks, turns.who, turns.until, turns.count)
        count("multicast" if order == "multicast" else "causal", late)
    if order == "delta" and facts.has_deadline and facts.has_clock:
        count("expired", engine.mark_expired(history.events, marks, history.clock, history.deadline))
        if history.clock_missing:
            reasons.append(f"{_where(history)}a delivered row has no clock_us")
    if allow:
        engine.clear(marks, DUPLICATE)
    findings = [] if knots is None or not knots.cycle else [_where(history) + tell_cycle(history, knots.cycle)]
    return Found(engine, history, marks, knots, counts, reasons, findings)


def _late_fifo(engine: Engine, history: History, facts: Facts, marks: Ints) -> int:
    if facts.deliveries_only and not facts.numbered:
        return 0
    processes = history.processes
    return engine.mark_late_fifo(
        history.start, history.events, marks, history.source, engine.ints(processes), engine.ints(processes, -1)
    )


def _gaps(history: History) -> list[str]:
    """Gaps as reasons."""
    reasons = []
    for gap in history.gaps[: _REASONS_SHOWN + 1]:
        who = f"{_where(history)}node {history.process_name(gap.process)}"
        hint = "rows are missing (or steps do not count rows: --steps ordered)"
        if gap.last is None:
            reasons.append(f"{who} begins at step {gap.next}: {hint}")
        else:
            reasons.append(f"{who} goes from step {gap.last} to step {gap.next}: {hint}")
    return reasons


def _list(found: Sequence[Found], order: Order) -> list[Violation]:
    """The first violations as bare facts."""
    listed: list[Violation] = []
    for one in found:
        if len(listed) >= LISTED:
            break
        if not one.violations:
            continue
        history = one.history
        bare = [name_ghost(history, ghost) for ghost in history.ghosts]
        for event in _marked(one, LISTED):
            mark = int(one.marks[event])
            bare += [name_violation(history, event, kind) for kind in _kinds(mark, order)]
        if one.knots is not None:
            bare += [name_violation(history, pair[3], "total") for pair in one.knots.pairs[:LISTED]]
        listed += bare
    return listed[:LISTED]


def _first(found: Found, order: Order) -> Violation:
    """The first violation of a history, by node and step, as a story. Integrity comes before order."""
    engine, history = found.engine, found.history
    marked = _marked(found, 1)
    if history.ghosts:
        ghost = history.ghosts[0]
        if not marked or ghost.process <= history.process_of(marked[0]):
            return name_ghost(history, ghost)
    if marked:
        return tell(engine, history, marked[0], kind_of(int(found.marks[marked[0]]), order))
    assert found.knots is not None
    return tell_disagreement(engine, history, found.knots.pairs[0])


def _marked(found: Found, most: int) -> list[int]:
    return [int(event) for event in found.engine.marked(found.marks, most)]


def _kinds(mark: int, order: Order) -> list[Any]:
    return [kind_of(bit, order) for bit in (DUPLICATE, EARLY, UNADDRESSED, LATE, EXPIRED) if mark & bit]


def _parts(found: Sequence[Found], order: Order, facts: Facts) -> tuple[Part, ...]:
    parts = []
    for one in found:
        reasons = [*_reasons_of_log(facts, order, one.history.deliveries), *one.reasons]
        parts.append(
            Part(
                group=one.history.group,
                verdict="violated" if one.violations else "unknown" if reasons else "holds",
                deliveries_checked=one.history.deliveries,
                violations=one.violations,
                reasons=_shorten(reasons),
            )
        )
    return tuple(parts)


def _where(history: History) -> str:
    return "".join(f"{name}={value}, " for name, value in history.group if name != "run_id")


def _shorten(reasons: Sequence[str]) -> tuple[str, ...]:
    if len(reasons) <= _REASONS_SHOWN:
        return tuple(reasons)
    return (*reasons[:_REASONS_SHOWN], f"and {len(reasons) - _REASONS_SHOWN} more")
