"""The registry: every protocol and dissemination by name, and the functions that build a node from a name.

A package of the user adds protocols through the entry-point group `precede.protocols`, whose entry points name
an `Entry`, and disseminations through another group (`DISSEMINATION_ENTRY_POINTS`). Without a package the
name `module:ENTRY` finds either in a module that can be imported. A module is imported when its name is
looked up: importing the registry stays cheap.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from traceback import extract_tb
from typing import Any, Final, Generic, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from precede.core.errors import BadInput
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.core.settings import Setting, nearest
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.node import LayeredNode
from precede.protocols.layered.ordering import Ordering
from precede.protocols.options import OptionsT, declared_options, read_struct

Order: TypeAlias = Literal["none", "fifo", "causal", "multicast", "delta", "total"]
WorldKind: TypeAlias = Literal["contacts", "point_to_point", "switched", "flood", "cellular"]
Carriers: TypeAlias = Literal["receivers", "source", "last", "unacknowledged"]

ENTRY_POINTS: Final = "precede.protocols"
DISSEMINATION_ENTRY_POINTS: Final = "precede.disseminations"

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
    "arrival": "precede.protocols.rules.arrival:ENTRY",
    "timestamp": "precede.protocols.rules.timestamp:ENTRY",
    "lamport": "precede.protocols.rules.lamport:ENTRY",
    "sds": "precede.protocols.rules.sds:ENTRY",
}

_DISSEMINATIONS: Final[dict[str, str]] = {
    "direct": "precede.protocols.layered.direct:DISSEMINATION",
    "epidemic": "precede.protocols.layered.epidemic.node:DISSEMINATION",
    "flooding": "precede.protocols.floods.flooding:DISSEMINATION",
    "gossip": "precede.protocols.layered.gossip.entry:DISSEMINATION",
    **{
        name: f"precede.protocols.routing.{name}:DISSEMINATION"
        for name in ("direct_delivery", "first_contact", "spray_and_wait", "prophet", "maxprop")
    },
}

_USUAL_DISSEMINATION: Final[dict[str, str]] = {
    "point_to_point": "direct",
    "contacts": "epidemic",
    "flood": "flooding",
}


class Entry(Struct, Generic[OptionsT], frozen=True):
    """One protocol: its name, the order it promises, its worlds, its options, and how a node is built.

    `build(role, context)` makes a node. An ordering gives `ordering(context)` instead, and is joined to a
    dissemination. `options` is the struct that both find in `context.options`.
    """

    name: str
    title: str
    paper: str
    order: Order
    worlds: tuple[WorldKind, ...]
    options: type[OptionsT]
    roles: tuple[str, ...] = ("node",)
    build: Callable[[str, Context[OptionsT]], Node] | None = None
    ordering: Callable[[Context[OptionsT]], Ordering] | None = None
    packets: tuple[type[Packet], ...] = ()


class DisseminationEntry(Struct, Generic[OptionsT], frozen=True):
    """One way to spread the messages of an ordering."""

    name: str
    title: str
    worlds: tuple[WorldKind, ...]
    options: type[OptionsT]
    build: Callable[[Context[OptionsT], Ordering], Dissemination]
    packets: tuple[type[Packet], ...] = ()
    state: str = ""
    """The name of another dissemination whose saved state this one can continue; "" means only its own."""
    carriers: Carriers | None = None
    """Which nodes must carry a message until its deadline. The swarm derives from it what must be delivered.

    `receivers`: the source and every node that got a copy. `source`: the source alone. `last`: a node hands its
    copy over, and the receiver carries it. `unacknowledged`: like `receivers`, until the only destination has
    the message. None: not declared; then the swarm asks the nodes what they carry.
    """


class JoinedOptions(Struct, frozen=True):
    """The options of an ordering and of the dissemination it is joined to."""

    ordering: Any
    dissemination: Any
    joined_to: DisseminationEntry[Any]


def names() -> list[str]:
    return [*_PROTOCOLS, *sorted(name for name in _foreign() if name not in _PROTOCOLS)]


def find(name: str) -> Entry[Any]:
    """Return the entry of a protocol by its name or `module:NAME`. Raise `BadInput` if there is none."""
    if name in _PROTOCOLS:
        entry: Entry[Any] = _load(_PROTOCOLS[name])
        return entry
    if ":" in name:
        return _checked(name, load_object(name))
    if name not in _foreign():
        raise BadInput(f"unknown protocol {name!r} {nearest(name, names())}")
    return _checked(name, _foreign()[name].load())


def load_object(target: str) -> Any:
    """Import a module and return the object that `module:NAME` names. Raise `BadInput` if that fails."""
    module, colon, name = target.partition(":")
    if not colon or not name or not module:
        raise BadInput(f"{target!r}: write MODULE:NAME")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise BadInput(f"{target}: {error}") from error
    except AttributeError:
        raise BadInput(f"{target}: {module} has no {name}") from None
    except Exception as error:
        raise BadInput(f"{target}: {module} cannot be imported: {described(error)}") from error


def described(error: BaseException) -> str:
    """Describe an exception in one line, with the file and line that raised it."""
    frames = extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _checked(name: str, entry: Any) -> Entry[Any]:
    """Return the entry of a plug-in. Raise `BadInput` if it is no entry or declares its options wrongly."""
    if not isinstance(entry, Entry):
        raise BadInput(f"protocol {name!r}: its entry point is a {type(entry).__name__}, not an Entry")
    try:
        declared_options(entry.options)
    except TypeError as error:
        raise BadInput(f"protocol {name!r}: its options are not a declared struct: {error}") from error
    return entry


def find_dissemination(name: str) -> DisseminationEntry[Any]:
    """Return the entry of a dissemination by its name or `module:NAME`. Raise `BadInput` if there is none."""
    if name in _DISSEMINATIONS:
        entry: DisseminationEntry[Any] = _load(_DISSEMINATIONS[name])
        return entry
    if ":" in name:
        loaded = load_object(name)
    elif name in _foreign_disseminations():
        loaded = _foreign_disseminations()[name].load()
    else:
        raise BadInput(f"unknown dissemination {name!r} {nearest(name, disseminations())}")
    if not isinstance(loaded, DisseminationEntry):
        raise BadInput(f"dissemination {name!r}: a {type(loaded).__name__}, not a DisseminationEntry")
    return loaded


def disseminations() -> list[str]:
    return [
        *_DISSEMINATIONS,
        *sorted(name for name in _foreign_disseminations() if name not in _DISSEMINATIONS),
    ]


def options_of_entry(
    entry: Entry[Any], dissemination: str | None = None, listed: Sequence[str] = ()
) -> dict[str, Setting]:
    """Return every option of an entry by key, with those of its dissemination (`direct` unless named).

    The choices of the option `dissemination` are our own, this one, and those in `listed`.
    """
    options = dict(declared_options(entry.options))
    if entry.ordering is not None:
        options.update(declared_options(find_dissemination(dissemination or "direct").options))
        choices = tuple(dict.fromkeys([*_DISSEMINATIONS, *listed, dissemination or "direct"]))
        options["dissemination"] = Setting("choice", dissemination or "direct", "how messages spread", choices)
    return options


def option_groups(entry: Entry[Any]) -> dict[str, dict[str, Setting]]:
    """Return an entry's options under "", then what each dissemination that it can be joined to adds."""
    groups = {"": dict(declared_options(entry.options))}
    if entry.ordering is None:
        return groups
    for name in disseminations():
        below = declared_options(find_dissemination(name).options)
        groups[name] = {key: option for key, option in below.items() if key not in groups[""]}
    return groups


def wire_types(entry: Entry[Any], node: Node, dissemination: str) -> tuple[tuple[type[Packet], ...], Any]:
    """Return the packet types that a driver decodes, in a fixed order, and the type of the stamps."""
    if not isinstance(node, LayeredNode):
        return entry.packets, Any
    return (*find_dissemination(dissemination).packets, *entry.packets), node.ordering.stamp_type


def is_renewable(node: Node) -> bool:
    """Return whether a new incarnation of this node can continue from the state of an earlier one."""
    return isinstance(node, LayeredNode) and node.ordering.renewable


def usual_dissemination(world: str) -> str:
    """Return the default dissemination for a world of this kind; `direct` for an unknown kind."""
    return _USUAL_DISSEMINATION.get(world, "direct")


def make(name: str, role: str, context: Context[Mapping[str, Any] | Struct]) -> Node:
    """Build a node. `context.options` are options as written (some or all), or the protocol's own struct."""
    return make_entry(find(name), role, context)


def make_entry(entry: Entry[Any], role: str, context: Context[Mapping[str, Any] | Struct]) -> Node:
    return build_node(entry, role, replace(context, options=read_options(entry, context.options)))


BuildNode: TypeAlias = Callable[[Entry[Any], str, Context[Any]], Node]
"""Builds a node of a protocol, by its role and its context: `build_node`, or another that takes its place."""


def build_node(entry: Entry[Any], role: str, context: Context[Any]) -> Node:
    """Build a node from options that `read_options` returned: they are parsed once for thousands of nodes."""
    if role not in entry.roles:
        raise BadInput(f"protocol {entry.name!r} has no role {role!r} (it has {', '.join(entry.roles)})")
    if entry.ordering is not None:
        options: JoinedOptions = context.options
        ordering = entry.ordering(replace(context, options=options.ordering))
        below = replace(context, options=options.dissemination)
        return LayeredNode(ordering, options.joined_to.build(below, ordering))
    assert entry.build is not None, f"{entry.name}: an entry needs `build` or `ordering`"
    return entry.build(role, context)


def read_options(entry: Entry[Any], written: Mapping[str, Any] | Struct, usual: str = "direct") -> Any:
    """Return the options that `build_node` needs: the entry's struct, or `JoinedOptions` for an ordering.

    `written` holds values as a user writes them, or is a struct of options; what it lacks has its default.
    `usual` is the dissemination of an ordering whose options name none. Raise `BadInput` for an unknown key
    or a value that cannot be used.
    """
    options = asdict(written) if isinstance(written, Struct) else written
    dissemination = str(options.get("dissemination", usual))
    known = options_of_entry(entry, dissemination)
    for key in options:
        if key not in known:
            raise BadInput(f"protocol {entry.name!r} has no option {key!r} {nearest(key, known)}")
    own = read_struct(entry.options, options)
    if entry.ordering is None:
        return own
    joined_to = find_dissemination(dissemination)
    return JoinedOptions(own, read_struct(joined_to.options, options), joined_to)


def is_durable(options: Any) -> bool | None:
    """Is the option `durable` on, in options that `read_options` returned? None: there is no such option."""
    parts = (options.dissemination, options.ordering) if isinstance(options, JoinedOptions) else (options,)
    return next((part.durable for part in parts if hasattr(part, "durable")), None)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@cache
def _foreign() -> dict[str, Any]:
    return _installed(ENTRY_POINTS)


@cache
def _foreign_disseminations() -> dict[str, Any]:
    return _installed(DISSEMINATION_ENTRY_POINTS)


def _installed(group: str) -> dict[str, Any]:
    """Return the entry points of installed packages in a group, by name."""
    from importlib.metadata import entry_points  # takes 11 ms; most runs use no foreign protocol

    return {point.name: point for point in entry_points(group=group)}
