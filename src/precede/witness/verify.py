"""The verifier: from a log to a verdict. docs/concepts/orders.md has the formal definitions.

The verifier reads broadcast and delivered rows and the order in which each node wrote them; Δ-causal order adds
deadlines and local clocks. It knows no protocol. If rows prove a violation the verdict is *violated*, whatever
else is missing; otherwise missing information makes it *unknown*; otherwise the order *holds*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, Unpack, get_args

from msgspec.structs import replace

from precede.core.errors import BadInput
from precede.core.settings import did_you_mean
from precede.witness.checks.engine import Engine
from precede.witness.history import History
from precede.witness.judgement import Facts, judge
from precede.witness.reading.column_names import KNOWN, Layout, match_columns, read_by, read_kinds, read_mapping
from precede.witness.reading.logs import Log, open_log
from precede.witness.reading.plain import PlainBuilder
from precede.witness.verdict import ORDERS, Duplicates, Order, Steps, Verdict, read_order

if TYPE_CHECKING:
    from precede.witness.reading.arrays import ArrayBuilder

EngineName: TypeAlias = Literal["plain", "numba"]


class Table(Protocol):
    """An Arrow table or record batch, or a pandas or polars frame."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""


class TableReader(Protocol):
    """An Arrow record batch reader."""

    def read_all(self) -> Any:
        """Return the rest of the batches as one table."""


LogSource: TypeAlias = str | PathLike[str] | Table | TableReader | Iterable[Mapping[str, Any]] | Log


class VerifyOptions(TypedDict, total=False):
    """The options that describe a log, as `verify` takes them: the command line and Spark jobs pass them on."""

    columns: str | Mapping[str, str] | None
    by: str | Sequence[str] | None
    kinds: str | Mapping[str, str] | None
    steps: Steps
    duplicates: Duplicates
    members: str | Sequence[str] | None


def verify(
    source: LogSource,
    order: Order | None = None,
    *,
    columns: str | Mapping[str, str] | None = None,
    by: str | Sequence[str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    steps: Steps = "counted",
    duplicates: Duplicates = "forbid",
    members: str | Sequence[str] | None = None,
    engine: EngineName | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verdict:
    """Check whether a log keeps an order of delivery. Raises BadInput if the log cannot be read.

    * `source`: a path (CSV, JSON lines, Parquet, a run's directory), `-` for standard input, an Arrow table, a
      pandas frame, or rows as mappings.
    * `order`: by default the order that run.json promises, else causal.
    * `columns`: maps our column names to the log's, as a mapping or as text: `node=consumer,step=offset`.
    * `by`: the columns that split the log into independent orders.
    * `kinds`: the words that mean broadcast and delivered: `broadcast=send,delivered=receive`.
    * `steps`: with "ordered" steps order rows without counting them, so that a hole is no gap.
    * `duplicates`: with "allow" a node may deliver a message again.
    * `members`: the names of a known membership. A member without rows makes the verdict unknown; a message of
      any other node without rows is a ghost. With order "total", what one member delivers, all must have
      delivered at the end of the log; then the default is what run.json lists, if anything.
    * `engine`: plain Python or numba; by default numba for large logs.
    * `progress`: called with the number of rows read so far.

    >>> import precede
    >>> rows = [
    ...     {"node": "a", "step": 0, "kind": "broadcast", "message": "m1"},
    ...     {"node": "a", "step": 1, "kind": "broadcast", "message": "m2"},
    ...     {"node": "b", "step": 0, "kind": "delivered", "message": "m2"},
    ...     {"node": "b", "step": 1, "kind": "delivered", "message": "m1"},
    ... ]
    >>> verdict = precede.verify(rows, "causal")
    >>> verdict.verdict, verdict.counts
    ('violated', {'causal': 1})
    """
    _check_choice("order", order, (*ORDERS, None))
    _check_choice("steps", steps, get_args(Steps))
    _check_choice("duplicates", duplicates, get_args(Duplicates))
    log = open_log(source)
    chosen_order, note = _choose_order(order, log.promised)
    mapping = read_mapping(columns, "--columns", KNOWN)
    layout = match_columns(log.names, log.name, mapping, read_by(by), read_kinds(kinds))
    if chosen_order != "delta":
        layout = layout.without("deadline_us", "clock_us")
    if chosen_order == "display":
        layout, engine = layout.with_places(log.names), "plain"
    names = _read_members(members, log, chosen_order)
    return verify_layout(
        log, layout, chosen_order, steps, duplicates, names, engine=engine, note=note, progress=progress
    )[0]


def verify_layout(
    log: Log,
    layout: Layout,
    order: Order,
    steps: Steps = "counted",
    duplicates: Duplicates = "forbid",
    members: tuple[str, ...] = (),
    *,
    engine: EngineName | None = None,
    note: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Verdict, list[History]]:
    """Verify a log whose columns are known; return the verdict and the histories it is about."""
    checks, histories, facts = read_histories(log, layout, steps == "counted", engine, progress)
    facts.members = members
    return judge(checks, histories, facts, order, duplicates == "allow", note), histories


def verify_each(
    log: Log, order: Order, rows: Mapping[tuple[str, ...], int], **options: Unpack[VerifyOptions]
) -> tuple[dict[tuple[str, ...], Verdict], Facts]:
    """Verify the independent orders of a log one by one; `rows` has the number of rows of each."""
    mapping = read_mapping(options.get("columns"), "--columns", KNOWN)
    layout = match_columns(
        log.names, log.name, mapping, read_by(options.get("by")), read_kinds(options.get("kinds"))
    )
    if order != "delta":
        layout = layout.without("deadline_us", "clock_us")
    counted, allow = options.get("steps", "counted") == "counted", options.get("duplicates") == "allow"
    checks, histories, facts = read_histories(log, layout, counted, None, None)
    facts.members = read_names(options.get("members") or ())
    verdicts = {}
    for history in histories:
        key = tuple(value for _, value in history.group)
        verdicts[key] = judge(checks, [history], replace(facts, rows=rows[key]), order, allow, None)
    return verdicts, facts


def _check_choice(name: str, value: str | None, choices: Sequence[str | None]) -> None:
    if value not in choices:
        names = [choice for choice in choices if choice]
        raise BadInput(f"{name}: {value!r} is none of {', '.join(names)}{did_you_mean(str(value), names)}")


def _choose_order(order: Order | None, promised: str | None) -> tuple[Order, str | None]:
    """Return the order to check, and a note if run.json says something about the order."""
    if order is not None:
        return order, None
    if promised in ORDERS:
        return read_order(promised), f"the run promises {promised} order"
    return "causal", None if promised is None else "the run promises no order; causal was checked"


def _read_members(members: str | Sequence[str] | None, log: Log, order: Order) -> tuple[str, ...]:
    """Return the option `members`, checked; by default what run.json lists, if the order is total."""
    if members is None:
        return log.members if order == "total" else ()
    return read_names(members)


def read_names(members: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of a membership, each once. Raise BadInput if one is empty."""
    names = members.split(",") if isinstance(members, str) else members
    listed = tuple(dict.fromkeys(name.strip() for name in names))
    if not all(listed):
        raise BadInput(f"members: expected names such as a,b,c, got {members!r}")
    return listed


def read_histories(
    log: Log,
    layout: Layout,
    counted: bool,
    engine: EngineName | None,
    progress: Callable[[int], None] | None,
) -> tuple[Engine, list[History], Facts]:
    """Read the log into histories, with the engine that fits its size."""
    builder: PlainBuilder | ArrayBuilder
    checks: Engine
    if _use_numba(log, engine):
        from precede.witness.checks.numba_engine import NumbaEngine
        from precede.witness.reading.arrays import ArrayBuilder

        checks, builder = NumbaEngine(), ArrayBuilder(layout, log, counted)
    else:
        checks, builder = Engine(), PlainBuilder(layout, log, counted)
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
        has_destinations="destinations" in layout.columns and log.has_values(layout.columns["destinations"]),
        has_deadline=builder.has_deadline,
        has_clock="clock_us" in layout.columns and log.has_values(layout.columns["clock_us"]),
        truncated=log.truncated,
        other_kinds=tuple(builder.other_kinds),
    )
    return checks, histories, facts


def _use_numba(log: Log, engine: EngineName | None) -> bool:
    if engine is not None:
        return engine == "numba"
    return log.large and all(find_spec(module) is not None for module in ("numpy", "pyarrow", "numba"))
