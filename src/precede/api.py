"""What an application imports, lazily, from `precede`.

May import: protocols, runtime, experiments, witness, core
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, Literal

from precede.core.errors import BadInput
from precede.core.instants import MILLISECOND, Duration, parse_duration

if TYPE_CHECKING:
    from precede.core.identity import NodeId
    from precede.core.node import Node
    from precede.experiments.simulation import Simulation
    from precede.runtime.group import Group
    from precede.runtime.transports.transport import Transport
    from precede.witness.verdict import Verdict

__all__ = ["join", "simulate", "verify"]

MOST_CARRIED = 50_000
"""How many messages a member carries for others, if nobody says (`cache=`); `evict=` says who leaves."""

Order = Literal["none", "fifo", "causal", "delta", "multicast", "total"]


def join(
    group: str,
    name: str,
    *,
    key: bytes | Sequence[bytes] | None,
    order: Order = "causal",
    lifetime: str | Duration | None = None,
    store: str | Path | None = None,
    members: Sequence[str] = (),
    bind: tuple[str, int] = ("127.0.0.1", 0),
    peers: Sequence[tuple[str, int]] = (),
    log: str | Path | None = None,
    lan: tuple[str, int] | None = None,
    transport: Transport | None = None,
    beacon: float = 0.5,
    identity: bytes | None = None,
    roster: Mapping[str, bytes] | None = None,
    **options: Any,
) -> Group:
    """Become a member of a group: `async with precede.join("picnic", "ana", key=key, peers=[...]) as g:`.

    `key` is the group's 32 secret bytes (`precede.runtime.links.sealing.new_key()`), or several, newest first,
    while a group changes keys; None only where the link has its own encryption. With a `lifetime`, causal
    becomes Δ-causal: what is lost is waited for until it would be dead anyway. `multicast` takes destination
    sets and needs the members' names and a store; `total` needs the members' names. On a LAN members find
    each other through a multicast address and port (`lan`); else `peers` says where some of them are. With a
    store, a restart goes on where the last run ended; without one, every start is a new life.
    With a `roster` (public keys by name) and this member's own `identity` (32 secret bytes) every message is
    signed by its author, and nothing else is let in (docs/security.md).
    """
    from precede.runtime.group import group_key
    from precede.runtime.transports.udp import UdpTransport

    if (identity is None) != (roster is None):
        raise BadInput("identity and roster go together: who signs, and whose signatures count")
    _check_joining(group, name, members, beacon)
    lives = _read_lifetime(lifetime)
    for what, place in [("bind", bind), *(("peers", peer) for peer in peers), *([("lan", lan)] if lan else [])]:
        _check_address(what, place)
    protocol = _protocol_for(order, lives, members)
    if order == "multicast" and store is None:
        raise BadInput("order='multicast' needs store=...: a member that forgets who it was is another process")
    chosen: dict[str, Any] = {"durable": store is not None, **options}
    if lives is not None:
        chosen["lifetime"] = lives
    secrets = _read_secrets(key)
    return open_member(
        protocol,
        "node",
        group,
        name,
        chosen,
        transport or UdpTransport(bind, peers, lan),
        members=members,
        keys=tuple(group_key(secret, group) for secret in secrets),
        store=None if store is None else Path(store),
        log=None if log is None else Path(log),
        beacon=beacon,
        identity=identity,
        roster=roster,
    )


def _check_joining(group: str, name: str, members: Sequence[str], beacon: float) -> None:
    for what, word in (("group", group), ("name", name)):
        if not isinstance(word, str) or not word:
            raise BadInput(f"{what}: a text that is not empty is wanted, not {word!r}")
    if isinstance(members, str) or not all(isinstance(member, str) for member in members):
        raise BadInput(f"members: a list of names is wanted, not {members!r}")
    if not beacon > 0:
        raise BadInput(f"beacon: seconds between two signs of life are wanted, not {beacon!r}")


def _read_lifetime(lifetime: str | Duration | None) -> Duration | None:
    lives = parse_duration(lifetime) if isinstance(lifetime, str) else lifetime
    if lives is not None and lives < MILLISECOND:
        raise BadInput(f"lifetime: {lifetime!r} is {lives} microseconds; write it with its unit, '20s'")
    return lives


def _check_address(what: str, place: Any) -> None:
    match place:
        case (str(), int(port)) if 0 <= port <= 65535:
            return
    raise BadInput(f'{what}: ("10.0.0.7", 5001) is wanted, not {place!r}')


def _read_secrets(key: bytes | Sequence[bytes] | None) -> Sequence[bytes]:
    """No key at all must be said: an empty list is a mistake, and a short secret is none."""
    if key is None:
        return ()
    secrets = [key] if isinstance(key, (bytes, str)) else list(key)
    if not secrets:
        raise BadInput("key: there is none in the list (key=None leaves links to their own encryption)")
    for secret in secrets:
        if not isinstance(secret, bytes) or len(secret) != 32:
            said = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
            raise BadInput(f"key: 32 secret bytes are wanted (`precede keys make`), not {said}")
    return secrets


def open_member(
    protocol: str,
    role: str,
    group: str,
    name: str,
    options: Mapping[str, Any],
    transport: Transport,
    *,
    members: Sequence[str] = (),
    book: Mapping[str, NodeId] | None = None,
    random: Random | None = None,
    **given: Any,
) -> Group:
    """A node of any protocol and role over sockets; what is `given` goes to `runtime.group.Group`.

    With a `book` of ids, members are those it names; else ids come from names.
    """
    from precede.core.node import Context
    from precede.protocols import registry
    from precede.runtime.codec import Codec
    from precede.runtime.group import Group, node_id

    entry = registry.find(protocol)
    chosen = dict(options)
    if entry.ordering is not None:
        chosen.setdefault("dissemination", "epidemic")
    dissemination = str(chosen.get("dissemination", "direct"))
    known = registry.options_of_entry(entry, dissemination)
    if "durable" not in known:
        chosen.pop("durable", None)
    if "cache" in known:
        chosen.setdefault("cache", MOST_CARRIED)
    numbers = book if book is not None else {member: node_id(member) for member in (*members, name)}
    ids = tuple(sorted({numbers[member] for member in (*members, name)}))
    if len(ids) < len({*members, name}):
        raise BadInput("two members' names have the same 31-bit number; rename one of them")
    stream = random or SystemRandom()

    def make_node(node: NodeId, life: int) -> Node:
        return registry.make_entry(entry, role, Context(node, ids, chosen, stream, life))

    codec = Codec(*registry.wire_types(entry, make_node(numbers[name], 0), dissemination))
    kind = f"{protocol} over {dissemination}" if entry.ordering is not None else f"{protocol} as {role}"
    return Group(group, name, make_node, codec, transport, names=members, book=book, protocol=kind, **given)


def _protocol_for(order: Order, lifetime: Duration | None, members: Sequence[str]) -> str:
    """An application asks for an order, not for a paper."""
    if order == "multicast":
        if not members:
            raise BadInput("order='multicast' needs members=[...], the names that can be addressed")
        return "prs"
    if order == "total":
        if len(members) < 2:
            raise BadInput("order='total' needs members=[...], the names of those who send")
        return "drift"
    if order == "delta" and lifetime is None:
        raise BadInput("order='delta' needs a lifetime: how long a message may be waited for")
    if order in ("causal", "delta"):
        return "causal_barrier" if lifetime is None else "delta_causal"
    if order in ("none", "fifo"):
        return "unordered" if order == "none" else "fifo"
    raise BadInput(f"order {order!r}: none of none, fifo, causal, delta, multicast, total")


def simulate(
    scenario: str | PathLike[str], protocol: str | None = None, seed: int | None = None, **settings: Any
) -> Simulation:
    """One run in this process, its rows in memory: see `precede.experiments.simulation.simulate`."""
    from precede.experiments.simulation import simulate as run

    return run(scenario, protocol, seed, **settings)


def verify(*given: Any, **named: Any) -> Verdict:
    """The witness's verdict about a log: see `precede.witness.verify.verify`."""
    from precede.witness.verify import verify as judge

    return judge(*given, **named)
