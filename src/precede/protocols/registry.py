"""What is there: every protocol by name, with its paper, its order, its networks and its options.

One line per protocol below; a user's own package adds protocols through the entry-point group
`precede.protocols` (each entry point names an `Entry`) without touching this file. Modules are imported when a
name is asked for, so a base install never pays for what it does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import LONGEST, format_duration, parse_duration
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.node import LayeredNode
from precede.protocols.layered.ordering import Ordering

Order: TypeAlias = Literal["none", "fifo", "causal", "multicast", "delta", "total"]
WorldKind: TypeAlias = Literal["contacts", "point_to_point", "switched", "flood", "cellular"]

ENTRY_POINTS: Final = "precede.protocols"

Number = TypeVar("Number", int, float)
_MOST: Final = 1 << 62
_PROTOCOLS: Final[dict[str, str]] = {
    "unordered": "precede.protocols.layered.unordered:ENTRY",
    "fifo": "precede.protocols.layered.fifo:ENTRY",
    "vector_clock": "precede.protocols.layered.vector_clock:ENTRY",
    "vcube": "precede.protocols.vcube2018.entry:ENTRY",
    "causal_barrier": "precede.protocols.guidec2021.causal_barrier:ENTRY",
    "delta_causal": "precede.protocols.guidec2021.delta_causal:ENTRY",
    "hash_dag": "precede.protocols.layered.hash_dag:ENTRY",
    "prs": "precede.protocols.prs1997.prs:ENTRY",
    "rst": "precede.protocols.multicast.rst:ENTRY",
    "ses": "precede.protocols.multicast.ses:ENTRY",
    "drift": "precede.protocols.drift2006.entry:DRIFT",
    "tof": "precede.protocols.drift2006.entry:TOF",
    "was": "precede.protocols.was2021.entry:ENTRY",
    "ck": "precede.protocols.was2021.ck:ENTRY",
    "prs_mobile": "precede.protocols.prs1997.mobile:ENTRY",
}

_DISSEMINATIONS: Final[dict[str, str]] = {
    "direct": "precede.protocols.layered.direct:DISSEMINATION",
    "epidemic": "precede.protocols.layered.epidemic.node:DISSEMINATION",
    "flooding": "precede.protocols.floods.flooding:DISSEMINATION",
}

_USUAL_DISSEMINATION: Final[dict[str, str]] = {
    "point_to_point": "direct",
    "contacts": "epidemic",
    "flood": "flooding",
}


class Option(Struct, frozen=True):
    """One setting: how it is written, what it is when nobody says, what it does, how small it may be.

    A duration after which something is done again and again has a `least`: 0s would stop time.
    """

    kind: Literal["duration", "int", "float", "bool", "text", "choice"]
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: int = 0


class Entry(Struct, frozen=True):
    """One protocol. `build(role, context)` makes a node; an ordering instead gives `ordering(context)`."""

    name: str
    title: str
    paper: str
    order: Order
    worlds: tuple[WorldKind, ...]
    options: Mapping[str, Option]
    roles: tuple[str, ...] = ("node",)
    build: Callable[[str, Context], Node] | None = None
    ordering: Callable[[Context], Ordering] | None = None
    packets: tuple[type[Packet], ...] = ()


class DisseminationEntry(Struct, frozen=True):
    """One way to spread envelopes."""

    name: str
    title: str
    worlds: tuple[WorldKind, ...]
    options: Mapping[str, Option]
    build: Callable[[Context, Ordering], Dissemination]
    packets: tuple[type[Packet], ...] = ()


def names() -> list[str]:
    """Every protocol's name, the built-in ones first."""
    return [*_PROTOCOLS, *sorted(name for name in _foreign() if name not in _PROTOCOLS)]


def find(name: str) -> Entry:
    """The entry of a protocol; an unknown name is answered with the nearest known one."""
    if name in _PROTOCOLS:
        found = _load(_PROTOCOLS[name])
    elif name in _foreign():
        found = _foreign()[name].load()
    else:
        raise BadInput(f"unknown protocol {name!r}{_nearest(name, names())}")
    if not isinstance(found, Entry):
        raise BadInput(f"protocol {name!r}: its entry point is a {type(found).__name__}, not an Entry")
    return found


def find_dissemination(name: str) -> DisseminationEntry:
    """The entry of a dissemination."""
    if name not in _DISSEMINATIONS:
        raise BadInput(f"unknown dissemination {name!r}{_nearest(name, list(_DISSEMINATIONS))}")
    found = _load(_DISSEMINATIONS[name])
    assert isinstance(found, DisseminationEntry)
    return found


def options_of(name: str, dissemination: str | None = None) -> dict[str, Option]:
    """Every option that `make` takes for this protocol, its dissemination's included."""
    return options_of_entry(find(name), dissemination)


def options_of_entry(entry: Entry, dissemination: str | None = None) -> dict[str, Option]:
    """The same for an entry in hand."""
    options = dict(entry.options)
    if entry.ordering is not None:
        options.update(find_dissemination(dissemination or "direct").options)
        choices = tuple(_DISSEMINATIONS)
        options["dissemination"] = Option("choice", dissemination or "direct", "how messages spread", choices)
    return options


def wire_types(entry: Entry, node: Node, dissemination: str) -> tuple[tuple[type[Packet], ...], Any]:
    """What a driver must be able to decode: the packets in a fixed order, and what an ordering's stamps are."""
    if not isinstance(node, LayeredNode):
        return entry.packets, Any
    return (*find_dissemination(dissemination).packets, *entry.packets), node.ordering.stamp_type


def usual_dissemination(world: str) -> str:
    """What an ordering is joined to in a world of this kind when nobody says."""
    return _USUAL_DISSEMINATION.get(world, "direct")


def make(name: str, role: str, context: Context) -> Node:
    """Build a node. `context.options` may be partial and as written; unknown keys are an error."""
    return make_entry(find(name), role, context)


def make_entry(entry: Entry, role: str, context: Context) -> Node:
    """Build a node of an entry in hand (somebody's own protocol, a saboteur)."""
    dissemination = str(context.options.get("dissemination", "direct"))
    options = read_options(options_of_entry(entry, dissemination), context.options, entry.name)
    settled = Context(context.node, context.members, options, context.random, context.incarnation)
    return build_node(entry, role, settled)


def build_node(entry: Entry, role: str, context: Context) -> Node:
    """The same where the options have been read already: a world makes thousands of nodes from one reading."""
    if role not in entry.roles:
        raise BadInput(f"protocol {entry.name!r} has no role {role!r} (it has {', '.join(entry.roles)})")
    if entry.ordering is not None:
        ordering = entry.ordering(context)
        dissemination = find_dissemination(context.options["dissemination"])
        return LayeredNode(ordering, dissemination.build(context, ordering))
    assert entry.build is not None, f"{entry.name}: an entry needs `build` or `ordering`"
    return entry.build(role, context)


def read_options(known: Mapping[str, Option], written: Mapping[str, Any], protocol: str) -> dict[str, Any]:
    """Every known option with its value: as written, checked and converted, or its default."""
    for key in written:
        if key not in known:
            raise BadInput(f"protocol {protocol!r} has no option {key!r}{_nearest(key, list(known))}")
    return {
        key: _read(key, option, written[key]) if key in written else option.default
        for key, option in known.items()
    }


def _read(key: str, option: Option, value: Any) -> Any:
    """One option in its own type."""
    if value is None or (value == "none" and option.default is None):
        return option.default if value is None else None
    try:
        if option.kind == "duration":
            return _bounded(option, value if type(value) is int else parse_duration(value), LONGEST)
        if option.kind == "int":
            return _bounded(option, _whole(value), _MOST)
        if option.kind == "float":
            return _bounded(option, float(value), _MOST)
        if option.kind == "bool":
            return _truth(value)
        if not isinstance(value, (str, int, float)):
            raise ValueError(f"a text is wanted, not {value!r}")
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"option {key!r}: {error}") from error
    if option.kind == "choice" and value not in option.choices:
        raise BadInput(f"option {key!r}: {value!r} is none of {', '.join(option.choices)}")
    return str(value)


def _bounded(option: Option, value: Number, most: int) -> Number:
    if not option.least <= value <= most:
        bounds = [format_duration(end) if option.kind == "duration" else end for end in (option.least, most)]
        raise ValueError(f"{value} is not between {bounds[0]} and {bounds[1]}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ValueError(f"not a whole number: {value!r}")
    return int(value)


def _truth(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise ValueError(f"neither true nor false: {value!r}")
    return words[str(value).lower()]


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@cache
def _foreign() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _nearest(word: str, known: list[str]) -> str:
    near = get_close_matches(str(word), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else f" (known: {', '.join(known)})"
