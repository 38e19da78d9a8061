"""World kind `contacts`: two nodes hear each other while a contact lasts; nodes come and go.

The contacts are a file (CSV `a,b,start,end` or The ONE's `CONN` lines), or a generator makes mobility and the
contacts follow from it exactly. At one instant contacts end, nodes leave, nodes enter, contacts begin, messages
are born; what needs no time spreads over all hops within the instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, cast

from precede.core.errors import BadInput
from precede.core.instants import HOUR
from precede.experiments.tables import Table
from precede.experiments.worlds import BuiltWorld, Presence, WorldKind, everybody
from precede.sim.contacts import Contact, ContactNetwork
from precede.traces.contacts import ContactList, read_contacts

_KEYS: Final = {
    "kind": "contacts",
    "contacts": "a file: CSV a,b,start,end in seconds, or The ONE's CONN lines; gzipped or not",
    "nodes": "a CSV file node,enter,leave in seconds; default: everybody is always there",
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
_GENERATOR_KEYS: Final = {
    "city-bus": ("layout", "generator_seed", "range", "buses"),
    "pedestrians": ("layout", "generator_seed", "range", "duration", "rate"),
}


def _build(table: Table, seed: int) -> BuiltWorld:
    if table.has("trace"):
        contacts = _stored(table)
    else:
        contacts = _generated(table, seed) if table.has("generator") else _read(table)
    network = ContactNetwork(
        _as_rows(contacts),
        bandwidth=table.number("bandwidth", float("inf"), least=1e-9),
        overhead=table.duration("overhead", 0),
        share=cast(Literal["link", "node"], table.choice("share", ("link", "node"), "link")),
        summaries=cast(Literal["free", "timed"], table.choice("summaries", ("free", "timed"), "free")),
    )
    return BuiltWorld(network, contacts.names, _presence(contacts), end=contacts.span()[1])


def _read(table: Table) -> ContactList:
    """From files; a row that cannot be used is an error, for a run must not silently be another one."""
    for key in ("layout", "generator_seed", "range", "duration", "rate", "buses"):
        if table.has(key):
            raise table.wrong(key, "this is for generators, and [world] names none")
    if not table.has("contacts"):
        raise BadInput(f"{table.where('kind')}[world] needs `contacts` (a file) or `generator`")
    found = read_contacts(table.path("contacts"), table.path("nodes") if table.has("nodes") else None)
    for reject in found.rejects:
        raise BadInput(f"{reject.file}:{reject.line}: {reject.reason}")
    return found.contacts


def _stored(table: Table) -> ContactList:
    """From the lake, as `precede ingest` and `precede contacts` left it there."""
    from precede.traces.stored import read_stored_contacts

    for key in ("contacts", "nodes", "generator", "layout", "generator_seed", "duration", "rate", "buses"):
        if table.has(key):
            raise table.wrong(key, "this does not go together with `trace`")
    range_m = table.number("range") if table.has("range") else None
    try:
        found = read_stored_contacts(table.base / table.text("lake", "lake"), table.text("trace"), range_m)
    except BadInput as error:
        raise table.wrong("trace", str(error)) from None
    return found.since(found.span()[0])


def _generated(table: Table, seed: int) -> ContactList:
    from precede.traces import city_bus, pedestrians

    name = table.choice("generator", tuple(_GENERATOR_KEYS), "")
    for key in ("contacts", "nodes", "layout", "generator_seed", "range", "duration", "rate", "buses"):
        if table.has(key) and key not in _GENERATOR_KEYS[name]:
            raise table.wrong(key, f"the generator {name} does not take this")
    seed = table.whole("generator_seed", seed)
    layout = table.text("layout", "a")
    if name == "city-bus":
        mobility = city_bus.city_bus(seed, layout, table.whole("buses", 60, least=1))
        return mobility.contacts(table.number("range", city_bus.RANGE_M))
    duration, rate = table.duration("duration", 5 * HOUR), table.number("rate", 0.0097)
    mobility = pedestrians.pedestrians(seed, layout, duration, rate)
    return mobility.contacts(table.number("range", pedestrians.RANGE_M))


def _as_rows(contacts: ContactList) -> Sequence[Contact]:
    columns = (contacts.a, contacts.b, contacts.start_us, contacts.end_us)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _presence(contacts: ContactList) -> tuple[Presence, ...]:
    if contacts.presence is None:
        return everybody(contacts.nodes)
    stays = (contacts.presence.node, contacts.presence.enter_us, contacts.presence.leave_us)
    rows = zip(*(column.tolist() for column in stays), strict=True)
    return tuple(Presence(node, enter, leave) for node, enter, leave in rows)


KIND: Final = WorldKind("contacts", "two nodes hear each other while a contact lasts", _KEYS, _build)
