"""World kind `contacts`: two nodes hear each other while a contact lasts; nodes come and go.

The contacts are a file (CSV `a,b,start,end` or The ONE's `CONN` lines), or a generator makes mobility and the
contacts follow from it exactly. At one instant contacts end, nodes leave, nodes enter, contacts begin, messages
are born; what needs no time spreads over all hops within the instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from precede.core.errors import BadInput
from precede.core.instants import HOUR, SECOND, Instant, parse_duration
from precede.experiments.tables import Table
from precede.experiments.worlds.kinds import BuiltWorld, Presence, WorldKind, everybody, numbered
from precede.sim.networks.contacts import Contact, ContactNetwork
from precede.traces.contacts import ContactList, read_contacts

_KEYS: Final = {
    "kind": "contacts",
    "contacts": "a file: CSV a,b,start,end in seconds, or The ONE's CONN lines; gzipped or not",
    "nodes": "a CSV file node,enter,leave in seconds; default: everybody is always there. Or how many nodes",
    "meetings": 'instead of a file: list of ["0", "1", "10s", "25s"], with `nodes` a number',
    "stays": 'with meetings: list of ["0", "5s", "1min"]; who is not in it is always there',
    "trace": "instead of files: a trace in the lake; time is counted from its first instant",
    "lake": "the lake's folder; default: lake beside the scenario, or what the command was told",
    "generator": "instead of files: city-bus or pedestrians",
    "layout": 'which map the generator uses: "a", "b" or "c"; default "a"',
    "generator_seed": "one seed is one day; default the run's seed",
    "range": "metres within which two nodes hear each other; default 200 for city-bus, 50 for pedestrians",
    "duration": "how long pedestrians keep entering; default 5h",
    "rate": "pedestrians per second at each entrance; default 0.0097",
    "buses": "how many buses; default 60",
    "bandwidth": 'bytes per second; default "inf"',
    "overhead": "time each message takes beside its bytes; default 0s",
    "share": "who has one transmitter: link (each direction of it) or node (all its links); default link",
    "summaries": "free, or timed (they take size / bandwidth and wait their turn); default free",
}
_SOURCE_KEYS: Final = (
    *("contacts", "nodes", "meetings", "stays", "trace", "lake", "generator"),
    *("layout", "generator_seed", "range", "duration", "rate", "buses"),
)
_MOST_PEDESTRIANS: Final = 100_000
_GENERATOR_KEYS: Final = {
    "city-bus": ("layout", "generator_seed", "range", "buses"),
    "pedestrians": ("layout", "generator_seed", "range", "duration", "rate"),
}


def _build(table: Table, seed: int) -> BuiltWorld:
    plan = _inline(table) if table.has("meetings") else _of_list(_listed(table, seed))
    network = ContactNetwork(
        plan.contacts,
        bandwidth=table.number("bandwidth", float("inf"), least=1e-9),
        overhead=table.duration("overhead", 0),
        share=cast(Literal["link", "node"], table.choice("share", ("link", "node"), "link")),
        summaries=cast(Literal["free", "timed"], table.choice("summaries", ("free", "timed"), "free")),
    )
    return BuiltWorld(network, plan.names, plan.presence, end=plan.end)


class _Plan(NamedTuple):
    """Who meets whom and who is there, whatever it came from."""

    names: tuple[str, ...]
    contacts: Sequence[Contact]
    presence: tuple[Presence, ...]
    end: Instant


def _listed(table: Table, seed: int) -> ContactList:
    """From a generator, the lake or files; a row that cannot be used is an error: a run must not be another."""
    if table.has("generator"):
        return _generated(table, seed)
    if table.has("trace"):
        return _stored(table)
    _only(table, ("contacts", "nodes"), "goes with `generator` or `meetings`")
    if not table.has("contacts"):
        wanted = "`contacts` (a file), `trace`, `meetings` or `generator`"
        raise BadInput(f"{table.where('kind')}[world] needs {wanted}")
    found = read_contacts(table.path("contacts"), table.path("nodes") if table.has("nodes") else None)
    for reject in found.rejects:
        raise BadInput(f"{reject.file}:{reject.line}: {reject.reason}")
    return found.contacts


def _stored(table: Table) -> ContactList:
    """From the lake, as `precede ingest` and `precede contacts` left it there."""
    from precede.lake.layout import Lake
    from precede.lake.stored_contacts import read_stored_contacts

    _only(table, ("trace", "lake", "range"), "does not go with `trace`")
    range_m = table.number("range") if table.has("range") else None
    try:
        lake = Lake(table.base / table.text("lake", "lake"))
        found = read_stored_contacts(lake, table.text("trace"), range_m)
    except BadInput as error:
        raise table.wrong("trace", str(error)) from None
    return found.since(found.span()[0])


def _only(table: Table, taken: tuple[str, ...], cause: str) -> None:
    """A key that another way to give contacts would take is an error."""
    for key in _SOURCE_KEYS:
        if table.has(key) and key not in taken:
            raise table.wrong(key, cause)


def _inline(table: Table) -> _Plan:
    """Written into the scenario: for small worlds, and for what a swarm draws."""
    _only(table, ("meetings", "nodes", "stays"), "does not go with `meetings`")
    names = numbered(table.count("nodes"))
    contacts = [_row(table, "meetings", item, names, 2) for item in table.items("meetings")]
    stays = [_row(table, "stays", item, names, 1) for item in table.items("stays")]
    churning = [row[0] for row in stays]
    presence = [Presence(node) for node in range(len(names)) if node not in churning]
    presence += [Presence(*row) for row in stays]
    end = max([row[-1] for row in (*contacts, *stays)], default=0)
    return _Plan(names, contacts, tuple(presence), end)


def _row(table: Table, key: str, item: Any, names: Sequence[str], count: int) -> Any:
    """`count` nodes by name, and two instants in order."""
    try:
        *who, start, end = item
        row = (*(names.index(str(name)) for name in who), parse_duration(start), parse_duration(end))
    except (TypeError, ValueError) as error:
        raise table.wrong(key, f"{item!r}: {error}") from None
    if len(who) != count or len(set(who)) != count or row[-1] < row[-2]:
        raise table.wrong(key, f"{item!r}: {count} name(s) and two instants in order are wanted")
    return row


def _generated(table: Table, seed: int) -> ContactList:
    from precede.traces import city_bus, pedestrians

    name = table.choice("generator", tuple(_GENERATOR_KEYS), "")
    _only(table, ("generator", *_GENERATOR_KEYS[name]), f"the generator {name} does not take this")
    seed = table.whole("generator_seed", seed)
    layout = table.text("layout", "a")
    if name == "city-bus":
        mobility = city_bus.city_bus(seed, layout, table.count("buses", 60))
        return mobility.contacts(table.number("range", city_bus.RANGE_M))
    duration, rate = table.duration("duration", 5 * HOUR), table.number("rate", 0.0097)
    if rate * duration / SECOND > _MOST_PEDESTRIANS:
        raise table.wrong("rate", f"more than {_MOST_PEDESTRIANS:,} pedestrians would enter at each entrance")
    mobility = pedestrians.pedestrians(seed, layout, duration, rate)
    return mobility.contacts(table.number("range", pedestrians.RANGE_M))


def _of_list(contacts: ContactList) -> _Plan:
    columns = (contacts.a, contacts.b, contacts.start_us, contacts.end_us)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    if contacts.presence is None:
        presence = everybody(contacts.nodes)
    else:
        stays = (contacts.presence.node, contacts.presence.enter_us, contacts.presence.leave_us)
        presence = tuple(Presence(*stay) for stay in zip(*(column.tolist() for column in stays), strict=True))
    return _Plan(contacts.names, rows, presence, contacts.span()[1])


KIND: Final = WorldKind("contacts", "two nodes hear each other while a contact lasts", _KEYS, _build)
