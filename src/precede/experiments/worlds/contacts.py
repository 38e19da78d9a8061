"""World kind `contacts`: two nodes hear each other while a contact lasts; nodes come and go.

The contacts are a file (CSV `a,b,start,end` or The ONE's `CONN` lines), or a generator makes mobility and the
contacts follow from it exactly. At one instant contacts end, nodes leave, nodes enter, contacts begin, messages
are born. A message that needs no time to transfer spreads over all hops within the instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from precede.core.errors import BadInput
from precede.core.instants import HOUR, SECOND, Duration, Instant, parse_duration
from precede.core.settings import whole
from precede.experiments.keys import MOST_NODES, distribution, duration, input_file, key, node_count
from precede.experiments.tables import Table
from precede.experiments.worlds import generators
from precede.experiments.worlds.kinds import (
    BuiltWorld,
    Presence,
    WorldKind,
    WorldTable,
    everybody,
    numbered,
)
from precede.experiments.worlds.radios import RadioName, with_radio
from precede.sim.networks.contacts import Contact, ContactNetwork
from precede.sim.networks.interference import InterferingContacts
from precede.sim.networks.lossy_contacts import LossyContacts
from precede.sim.randomness import Distribution
from precede.traces.contacts import ContactList, read_contacts

if TYPE_CHECKING:
    from precede.lake.layout import Lake

_INSTANT: Final = (
    "transfers take no time (bandwidth inf, overhead 0s): a contact hands over everything at once, so order is "
    "kept almost trivially; `radio` or `bandwidth` gives transfers a time"
)
_AIR: Final = ("bandwidth", "overhead", "setup", "share")
_SOURCE_KEYS: Final = (
    *("contacts", "nodes", "meetings", "stays", "trace", "lake", "generator"),
    *dict.fromkeys(name for names in generators.KEYS.values() for name in names if name != "nodes"),
)


def _file_or_count(value: Any) -> Path | int:
    if isinstance(value, str) and not value.isdigit():
        return Path(value)
    count = whole(value)
    if not 1 <= count <= MOST_NODES:
        raise ValueError(f"{count} is not between 1 and {MOST_NODES}")
    return count


def _pair(value: Any) -> tuple[float, float]:
    both = value if isinstance(value, list) else [value, value]
    if len(both) != 2 or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in both):
        raise ValueError(f"expected a number or [least, most], got {value!r}")
    return float(both[0]), float(both[1])


def _sizes(value: Any) -> tuple[float, float]:
    pair = _pair(value)
    if not all(0 < one < 1e9 for one in pair):
        raise ValueError(f"expected two numbers above 0, got {value!r}")
    return pair


def _rows(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {value!r}")
    return tuple(value)


class ContactsTable(WorldTable, frozen=True, kw_only=True):
    """The keys of `[world]` for this kind."""

    contacts: Annotated[
        Path | None, input_file("CSV a,b,start,end in seconds, or The ONE's CONN lines; gzipped or not")
    ] = None
    nodes: Annotated[
        Path | int | None,
        key(
            "CSV node,enter,leave in seconds; none: all nodes are always there. Meetings, walks: how many",
            read=_file_or_count,
            shape="file or number",
        ),
    ] = None
    meetings: Annotated[
        tuple[Any, ...] | None,
        key("contacts, instead of a file", read=_rows, shape='list of ["0", "1", "10s", "25s"]'),
    ] = None
    stays: Annotated[
        tuple[Any, ...],
        key(
            "with meetings: when nodes enter and leave; the others are always there",
            read=_rows,
            shape='list of ["0", "5s", "1min"]',
        ),
    ] = ()
    trace: Annotated[
        str | None, key("a trace in the lake, instead of files; time counts from its first instant")
    ] = None
    lake: Annotated[str, key("folder or URL of the lake; a command's own --lake goes before it")] = "lake"
    generator: Annotated[generators.GeneratorName | None, key("a mobility generator, instead of files")] = None
    layout: Annotated[str, key("city-bus, pedestrians: the map: a, b or c")] = "a"
    generator_seed: Annotated[int | None, key("one seed is one day; none: the seed of the run")] = None
    range: Annotated[
        float | None,
        key(
            "metres within which two nodes hear each other; none: that of the radio, else 200 for city-bus, "
            "50 for pedestrians, 30 for others"
        ),
    ] = None
    duration: Annotated[
        Duration, duration("generators but city-bus: how long nodes walk; pedestrians: keep entering")
    ] = 5 * HOUR
    rate: Annotated[float, key("pedestrians per second at each entrance")] = 0.0097
    buses: Annotated[int, node_count("city-bus: number of buses")] = 60
    field: Annotated[
        tuple[float, float], key("walks: size in metres", read=_sizes, shape="[width, height]")
    ] = (1000.0, 1000.0)
    speed: Annotated[
        tuple[float, float], key("walks: metres per second", read=_pair, shape="number or [least, most]")
    ] = (0.5, 1.5)
    pause: Annotated[
        tuple[float, float],
        key("random-waypoint, street-waypoint: seconds at a goal", read=_pair, shape="number or [least, most]"),
    ] = (0.0, 120.0)
    leg: Annotated[Duration, duration("random-walk: time between two turns")] = 60 * SECOND
    alpha: Annotated[float, key("gauss-markov: memory, 0 none, 1 a straight line", most=1)] = 0.75
    step: Annotated[Duration, duration("gauss-markov: time between two changes")] = 10 * SECOND
    streets: Annotated[Path | None, input_file("street-waypoint, working-day: CSV x0,y0,x1,y1 in metres")] = (
        None
    )
    blocks: Annotated[
        tuple[float, float],
        key(
            "street-waypoint, working-day: blocks of the field, without streets",
            read=_sizes,
            shape="[columns, rows]",
        ),
    ] = (10.0, 10.0)
    offices: Annotated[int, key("working-day: number of offices", least=1)] = 5
    spots: Annotated[int, key("working-day: number of places for the evening", least=1)] = 3
    radio: Annotated[
        RadioName | None,
        key("sets bandwidth, overhead, setup, share and range to typical values, unless they are written"),
    ] = None
    setup: Annotated[Duration, duration("time at the beginning of a contact in which nothing is sent")] = 0
    bandwidth: Annotated[float, key("bytes per second", least=1e-9)] = float("inf")
    overhead: Annotated[Duration, duration("time each message takes in addition to its bytes")] = 0
    jitter: Annotated[
        Distribution | None, distribution("time drawn for each message, in addition to `overhead`")
    ] = None
    share: Annotated[
        Literal["link", "node", "air"],
        key("one transmitter for each direction of a link, one per node, or air that neighbours share"),
    ] = "link"
    summaries: Annotated[
        Literal["free", "timed"], key("summaries take no time, or size / bandwidth and wait their turn")
    ] = "free"
    loss: Annotated[
        float, key('probability that a packet is lost; not with share = "air"', least=0.0, most=1.0)
    ] = 0.0

    def unused(self) -> Mapping[str, str]:
        """Return the keys that have no effect beside the other keys' values, each with the reason."""
        used: tuple[str, ...]
        if self.meetings is not None:
            used, why = ("meetings", "nodes", "stays"), "with `meetings`"
        elif self.generator is not None:
            used, why = ("generator", *generators.KEYS[self.generator]), f"with the generator {self.generator}"
        elif self.trace is not None:
            used, why = ("trace", "lake", "range"), "with `trace`"
        else:
            used, why = ("contacts", "nodes"), "without `generator`, `trace` or `meetings`"
        return {name: why for name in _SOURCE_KEYS if name not in used}


def _build(world: ContactsTable, table: Table, seed: int) -> BuiltWorld:
    if world.meetings is None:
        plan = _plan_of(_last_contacts(world, table, seed))
    else:
        plan = _written_plan(world, table)
    air = with_radio(world.radio, table.data, {name: getattr(world, name) for name in _AIR})
    setup, contacts = air["setup"], plan.contacts
    if setup:
        contacts = [(a, b, min(start + setup, end), end) for a, b, start, end in contacts]
    network: ContactNetwork
    if world.loss and air["share"] == "air":
        raise table.wrong("loss", 'air that neighbours share (share = "air") loses nothing')
    if world.loss:
        network = LossyContacts(
            contacts,
            air["bandwidth"],
            air["overhead"],
            air["share"],
            world.summaries,
            world.jitter,
            world.loss,
        )
    elif air["share"] == "air":
        network = InterferingContacts(
            contacts, air["bandwidth"], air["overhead"], world.summaries, world.jitter
        )
    else:
        network = ContactNetwork(
            contacts, air["bandwidth"], air["overhead"], air["share"], world.summaries, world.jitter
        )
    takes_time = air["bandwidth"] < float("inf") or air["overhead"] or world.jitter is not None
    note = "" if takes_time else _INSTANT
    return BuiltWorld(network, plan.names, plan.presence, end=plan.end, note=note)


class _Plan(NamedTuple):
    """The contacts of a world and the stays of its nodes."""

    names: tuple[str, ...]
    contacts: Sequence[Contact]
    presence: tuple[Presence, ...]
    end: Instant


_LAST: Final[dict[tuple[Any, ...], ContactList]] = {}
"""The contacts that this process made last, by all they depend on: the runs of a sweep mostly have the same."""


def _last_contacts(world: ContactsTable, table: Table, seed: int) -> ContactList:
    own_seed = seed if world.generator is not None and world.generator_seed is None else None
    files = [path for path in (world.contacts, world.nodes, world.streets) if isinstance(path, Path)]
    if world.trace is not None:
        files = _stored_files(world, table, world.trace)
    sources = (getattr(world, name) for name in _SOURCE_KEYS)
    key = (own_seed, table.base, _heard_within(world, table), *sources, *map(_state_of, files))
    contacts = _LAST.get(key)
    if contacts is None:
        _LAST.clear()
        _LAST[key] = contacts = _contacts(world, table, seed)
    return contacts


def _state_of(path: Path) -> tuple[Any, ...]:
    """Return what changes with the content of a file, also if an archive brings its time of modification."""
    try:
        state = path.stat()
    except OSError:  # reading it tells the cause
        return (path,)
    return (path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def _heard_within(world: ContactsTable, table: Table) -> Any:
    """Return the metres within which two nodes hear each other; None if the generator decides."""
    return with_radio(world.radio, table.data, {"range": world.range})["range"]


def _contacts(world: ContactsTable, table: Table, seed: int) -> ContactList:
    """Return contacts from a generator, the lake or files. An unusable row is an error, never skipped."""
    if world.generator is not None:
        return generators.generated(world, table, seed, _heard_within(world, table))
    if world.trace is not None:
        return _stored(world, table, world.trace)
    if world.contacts is None:
        raise BadInput(
            f"{table.where('kind')}[world] needs `contacts` (a file), `trace`, `meetings` or `generator`"
        )
    if isinstance(world.nodes, int):
        raise table.wrong("nodes", f"expected a file's name, got {world.nodes}")
    contents = read_contacts(world.contacts, world.nodes)
    for reject in contents.rejects:
        raise BadInput(f"{reject.file}:{reject.line}: {reject.reason}")
    return contents.contacts


def _stored(world: ContactsTable, table: Table, trace: str) -> ContactList:
    """Read contacts that `precede ingest` or `precede contacts` wrote to the lake; the first is at time 0."""
    from precede.lake.stored_contacts import read_stored_contacts

    try:
        contacts = read_stored_contacts(_lake_of(world, table), trace, world.range)
    except BadInput as error:
        raise table.wrong("trace", str(error)) from None
    return contacts.since(contacts.span()[0])


def _stored_files(world: ContactsTable, table: Table, trace: str) -> list[Path]:
    from precede.lake.stored_contacts import stored_files

    try:
        return [path for _, _, path in stored_files(_lake_of(world, table), trace, world.range)]
    except BadInput as error:
        raise table.wrong("trace", str(error)) from None


def _lake_of(world: ContactsTable, table: Table) -> Lake:
    from precede.lake.layout import Lake
    from precede.lake.storage import joined

    return Lake(joined(table.base, world.lake))


def _written_plan(world: ContactsTable, table: Table) -> _Plan:
    """Read contacts and stays that are written into the scenario, as in small worlds and those of the swarm."""
    if not isinstance(world.nodes, int):
        raise table.lacks("'nodes', a number, with `meetings`")
    names = numbered(world.nodes)
    contact_rows = [_row(table, "meetings", item, names, 2) for item in world.meetings or ()]
    stay_rows = [_row(table, "stays", item, names, 1) for item in world.stays]
    listed = [row[0] for row in stay_rows]
    presence = [Presence(node) for node in range(len(names)) if node not in listed]
    presence += [Presence(*row) for row in stay_rows]
    end = max([row[-1] for row in (*contact_rows, *stay_rows)], default=0)
    return _Plan(names, contact_rows, tuple(presence), end)


def _row(table: Table, name: str, item: Any, names: Sequence[str], count: int) -> Any:
    """Read one element of a list: `count` named nodes and two instants in order; else raise `BadInput`."""
    try:
        *nodes, start, end = item
        row = (*(names.index(str(node)) for node in nodes), parse_duration(start), parse_duration(end))
    except (TypeError, ValueError) as error:
        raise table.wrong(name, f"{item!r}: {error}") from None
    if len(nodes) != count or len(set(nodes)) != count or row[-1] < row[-2]:
        raise table.wrong(name, f"{item!r}: expected {count} name(s) and two instants in order")
    return row


def _plan_of(contacts: ContactList) -> _Plan:
    columns = (contacts.a, contacts.b, contacts.start_us, contacts.end_us)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    if contacts.presence is None:
        presence = everybody(contacts.nodes)
    else:
        stays = (contacts.presence.node, contacts.presence.enter_us, contacts.presence.leave_us)
        presence = tuple(Presence(*stay) for stay in zip(*(column.tolist() for column in stays), strict=True))
    return _Plan(contacts.names, rows, presence, contacts.span()[1])


KIND: Final = WorldKind("contacts", "two nodes hear each other while a contact lasts", ContactsTable, _build)
