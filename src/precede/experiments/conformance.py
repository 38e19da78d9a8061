"""Trials of a user's own protocol: worked examples, the swarm, and built-in rivals with the same order."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, Duration
from precede.core.node import Context, Node
from precede.eventlog.sinks import TableSink
from precede.experiments.own_modules import allow_own_modules
from precede.experiments.stories.player import play
from precede.experiments.stories.text import parse_text
from precede.experiments.swarm.draw.point_to_point import DRAWER as POINT_TO_POINT
from precede.experiments.swarm.plan import Drawer, Plan, draw_plan, drawer_of_entry, find_drawer
from precede.experiments.swarm.swarm import Tally, WorldResult, run_plan
from precede.measures.events import measure_events
from precede.protocols import registry
from precede.protocols.options import Durable, duration
from precede.protocols.registry import Entry, Order

RIVALS: Final[dict[str, tuple[str, ...]]] = {
    "none": ("unordered",),
    "fifo": ("fifo", "vector_clock"),
    "causal": ("vector_clock", "causal_barrier"),
    "multicast": ("prs", "ses", "rst"),
    "delta": ("delta_causal",),
    "total": ("drift",),
}
_PAGES: Final[dict[str, tuple[str, ...]]] = {
    "an answer that overtakes its question": (
        "A broadcasts question",
        "B receives question from A",
        "B broadcasts answer",
        "C receives answer from B",
        "C receives question from A",
    ),
    "two messages of one source that change places": (
        "A broadcasts one",
        "A broadcasts two",
        "B receives two from A",
        "B receives one from A",
    ),
}
_EXPECTED: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "an answer that overtakes its question": {"C": ("question", "answer")},
    "two messages of one source that change places": {"B": ("one", "two")},
}


class OwnOptions(Durable, frozen=True, kw_only=True):
    """Options for a node class that declares none. Worlds of the swarm set these."""

    rto: Annotated[Duration, duration("retransmit after this time")] = 200 * MILLISECOND


class PageResult(Struct, frozen=True):
    """The result of playing one worked example: holds, breaks (for this `cause`) or not played."""

    page: str
    result: str
    cause: str = ""


class SwarmRow(Struct, frozen=True):
    """One protocol's line in a comparison of protocols: the swarm's findings and the cost of its messages."""

    protocol: str
    tally: Tally
    deliveries: int
    age_us_mean: float | None
    packets_per_delivery: float | None
    control_bytes_mean: float | None
    first_failure: WorldResult | None = None


def load_own(target: str) -> Any:
    """Import the object that `module:NAME` names, from the working directory or an installed package."""
    allow_own_modules()
    return registry.load_object(target)


def load_entry(target: str, order: Order) -> Entry[Any]:
    """Load the protocol that `module:Name` names: an `Entry`, or a `Node` class, which promises `order`.

    Raise `BadInput` if it is neither, or if no node of the class can be built.
    """
    target_object: Any = load_own(target)
    name = target.partition(":")[2]
    if isinstance(target_object, Entry):
        return target_object
    if not (isinstance(target_object, type) and issubclass(target_object, Node)):
        raise BadInput(f"{target}: neither an Entry nor a Node class")
    node_class: Any = target_object

    def build(role: str, context: Context[OwnOptions]) -> Node:
        node: Node = node_class(context)
        return node

    try:
        build("node", Context(0, (0, 1), OwnOptions(), Random(1)))
    except Exception as error:
        raise BadInput(f"{target}: {name}(context) cannot be built: {registry.described(error)}") from error
    return Entry(name, target, "your own", order, ("point_to_point",), OwnOptions, build=build)


def try_pages(entry: Entry[Any]) -> Iterator[PageResult]:
    """Play the worked examples that test the order which the entry promises, and yield their results."""
    if entry.order == "none":
        return
    for page, steps in _PAGES.items():
        if page.startswith("an answer") and entry.order == "fifo":
            continue
        yield _try_page(entry, page, steps)


def _try_page(entry: Entry[Any], page: str, steps: tuple[str, ...]) -> PageResult:
    text = parse_text([f"protocol: {entry.name}", "nodes: A B C", *steps], page)
    try:
        shown = [line for follows in play(text, entry) for line in follows]
    except BadInput as error:
        return PageResult(page, "not played", str(error))
    except Exception as error:
        return PageResult(page, "breaks", f"raised {registry.described(error)}")
    for node, expected in _EXPECTED[page].items():
        order = tuple(line.split()[2] for line in shown if line.startswith(f"{node} delivers "))
        if order != expected:
            return PageResult(page, "breaks", f"{node} delivered {', '.join(order) or 'nothing'}")
    return PageResult(page, "holds")


def try_swarm(
    entry: Entry[Any], worlds: int, seed: int, progress: Callable[[int], None] | None = None
) -> SwarmRow:
    """Run an entry in so many worlds of the swarm, with seeds from `seed` on; return its findings and costs."""
    base, drawer = _worlds_of(entry)
    return _swarm_row(
        entry.name,
        [
            (_for_entry(draw_plan(base, seed + number, drawer), entry), drawer, entry)
            for number in range(worlds)
        ],
        progress,
    )


def try_routing(
    target: str, ordering: str, worlds: int, seed: int, progress: Callable[[int], None] | None = None
) -> SwarmRow:
    """Run an ordering over the dissemination that `target` names, in so many swarm worlds of contacts."""
    name = f"{ordering}+{target}"
    drawer = find_drawer(name)
    return _swarm_row(
        name, [(draw_plan(name, seed + number, drawer), drawer, None) for number in range(worlds)], progress
    )


def _swarm_row(
    name: str, plans: list[tuple[Plan, Drawer, Entry[Any] | None]], progress: Callable[[int], None] | None
) -> SwarmRow:
    tally, first = Tally(), None
    measured: list[dict[str, Any]] = []
    for plan, drawer, entry in plans:
        sink = TableSink()
        result = run_plan(plan, drawer, entry, sink)
        tally.add(result)
        first = first or (result if result.failed else None)
        measured.append(_measured(sink))
        if progress is not None:
            progress(tally.worlds)
    return _row(name, tally, measured, first)


def _worlds_of(entry: Entry[Any]) -> tuple[str, Drawer]:
    """Return the built-in protocol whose worlds an entry gets, and the drawer of these worlds."""
    if entry.order == "multicast":
        return "prs", find_drawer("prs")
    if "point_to_point" in entry.worlds:
        return "vector_clock", POINT_TO_POINT
    return "delta_causal" if entry.order == "delta" else "causal_barrier", drawer_of_entry(entry)


def rivals_of(entry: Entry[Any]) -> list[Entry[Any]]:
    """Return the built-in protocols that promise the same order and run in the same kind of world."""
    kind = "point_to_point" if "point_to_point" in entry.worlds else entry.worlds[0]
    known = registry.names()
    return [
        rival
        for rival in (registry.find(name) for name in RIVALS[entry.order] if name in known)
        if kind in rival.worlds
    ]


def _for_entry(plan: Plan, entry: Entry[Any]) -> Plan:
    usual = registry.usual_dissemination(str(plan.run.world["kind"]))
    known = registry.options_of_entry(entry, usual)
    options = {key: value for key, value in plan.run.options.items() if key in known}
    run = msgspec.structs.replace(plan.run, protocol=entry.name, options=options)
    return msgspec.structs.replace(plan, run=run)


def _measured(sink: TableSink) -> dict[str, Any]:
    events = sink.events()
    return dict(measure_events(events.to_batches())) if events.num_rows else {}


def _row(protocol: str, tally: Tally, measured: list[dict[str, Any]], first: WorldResult | None) -> SwarmRow:
    def total(name: str) -> float:
        return float(sum(measures.get(name) or 0 for measures in measured))

    def mean(name: str, weight: str) -> float | None:
        weighed = [(measures.get(name), measures.get(weight) or 0) for measures in measured]
        count = sum(w for value, w in weighed if value is not None)
        return sum(value * w for value, w in weighed if value is not None) / count if count else None

    deliveries = total("deliveries")
    return SwarmRow(
        protocol,
        tally,
        int(deliveries),
        mean("age_us_mean", "deliveries"),
        total("packets") / deliveries if deliveries else None,
        mean("control_bytes_mean", "packets"),
        first,
    )
