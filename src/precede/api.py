"""Joining a group: turns an application's arguments into a running member.

May import: protocols, runtime, experiments, witness, core
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from inspect import iscoroutinefunction, signature
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Final, Literal, ParamSpec, TypeAlias, get_args

import msgspec

from precede.core.errors import BadInput
from precede.core.instants import Duration, format_duration, parse_duration
from precede.core.settings import did_you_mean
from precede.node_plans import LISTEN, PROTOCOLS, complete_options, dissemination_of, plan_node, plan_topics
from precede.protocols.options import written_options
from precede.runtime.blocking.blocking_group import BlockingGroup
from precede.runtime.deliveries import BACKLOG_BYTES
from precede.runtime.group import Group
from precede.runtime.history.retention import Retention
from precede.runtime.links.keyring import read_keys
from precede.runtime.names import check_names, check_roster, group_key
from precede.runtime.rosters import SignedRoster
from precede.runtime.settings import MemberSettings, read_lifetime
from precede.runtime.topics.lane_plan import NodePlan
from precede.runtime.transfer.snapshot import OnRestore, OnSnapshot
from precede.runtime.transports.addresses import check_address
from precede.runtime.transports.profiles import ProfileName, find_profile
from precede.runtime.transports.transport import Transport
from precede.runtime.transports.udp import LAN_GROUP, UdpTransport

GOSSIPED: Final = ("none", "fifo", "causal", "delta")
"""The orders whose messages a dissemination spreads."""

Order: TypeAlias = Literal["none", "fifo", "causal", "delta", "multicast", "total"]
"""The orders that `join` offers: see docs/guides/which-order.md."""


def join(
    group: str,
    name: str,
    *,
    key: bytes | str | Path | Sequence[bytes] | None,
    order: Order = "causal",
    lifetime: str | timedelta | None = None,
    store: str | Path | None = None,
    members: Sequence[str] = (),
    bind: tuple[str, int] | None = None,
    peers: Sequence[tuple[str, int]] = (),
    lan: bool | tuple[str, int] = False,
    transport: Transport | None = None,
    backlog: int = BACKLOG_BYTES,
    retention: Retention | None = None,
    on_snapshot: OnSnapshot | None = None,
    on_restore: OnRestore | None = None,
    snapshot_from: Sequence[str] | None = None,
    log: str | Path | None = None,
    redact: bool = False,
    segment: float | None = None,
    metrics: tuple[str, int] | None = None,
    profile: ProfileName = "lan",
    beacon: float | None = None,
    identity: bytes | None = None,
    roster: Mapping[str, bytes] | SignedRoster | None = None,
    admin: bytes | None = None,
    options: Mapping[str, object] | msgspec.Struct | None = None,
) -> Group:
    """Become a member of a group. Use the result with `async with`.

    * `key`: a key file (`precede keys make FILE`), or 32 secret bytes, or several, newest first. None: no key.
    * `order`: "delta" is causal order with a `lifetime` ("20min"); it needs clocks that roughly agree.
    * `store`: a file, with which a member continues after a restart; without one it is a new incarnation.
    * `members`: the names of the others. "total" and "multicast" need them; "multicast" also needs a store. In
      "total" they found the group: a majority of them with stores, all of them without. Until then
      `broadcast` raises NotYet (docs/concepts/total-order-groups.md).
    * `lan`: True finds members on the LAN by multicast, on every interface, over IPv4 and IPv6; or a multicast
      address such as ("239.83.7.1", 4700). `peers`: UDP addresses of some members. `bind`: the UDP address of
      this one; host "" is every interface. A `transport` replaces all three.
    * `backlog`: how many bytes of delivered messages may wait for the application, each counted with 512 bytes
      more than its payload. Without a store, further ones are dropped: the loop raises Missed. With a store
      none is dropped. While more than half of it waits, `broadcast` waits.
    * `retention`: how many delivered messages are kept for `Group.history`, how large the store and the log may
      become (`Retention`). Without it, the last 100,000 messages with at most 256 MiB.
    * `on_snapshot`, `on_restore`: one returns the state of the application as bytes, the other replaces it by a
      `Snapshot` of another member. A member that missed messages which nobody carries any more then goes on
      from there, in the orders "causal" and "total" (docs/guides/history.md). `snapshot_from` names the
      members whose snapshots are taken; without it, everybody's.
    * `log`: a folder for the event log, which `precede verify` reads. `redact` writes pseudonyms into it. With
      `segment` a file is added every so many seconds, so that a running group can be verified.
    * `metrics`: an address such as ("127.0.0.1", 9100) for Prometheus and `precede top`. It asks for no key
      (docs/guides/watch-a-group.md).
    * `profile`: settings for a kind of network, the same for all members: "lan", "internet", "ble" or "lora"
      (docs/guides/profiles.md). `beacon`: seconds between two beacons, if not the profile's. A neighbour that
      is silent for more than four beacons is gone.
    * `identity`, `roster`: a secret seed and everybody's public key: messages are signed (docs/security.md).
      With `admin`, a public key, the roster is a `SignedRoster`, which `Group.update_roster` replaces.
    * `options`: options of the protocol that implements the order (`precede protocols NAME` lists them).

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=bytes(32), order="causal") as group:
    ...         await group.broadcast(b"who brings bread?")
    ...         async for message in group:
    ...             return print(message.source, message.payload)
    >>> asyncio.run(main())
    ana b'who brings bread?'
    """
    _check_names(group, name, members)
    suited = find_profile(profile, order)
    if transport is not None and (bind is not None or peers or lan):
        raise BadInput("transport replaces bind, peers and lan: give these to the transport")
    transport = transport or _udp_transport(bind, peers, lan)
    suited.apply(transport)
    duration = read_lifetime(lifetime)
    chosen = {**written_options(options), "durable": store is not None}
    if profile != "lan" and order in GOSSIPED and chosen.get("dissemination", "gossip") == "gossip":
        chosen = {**suited.options, **chosen}
    if duration is not None:
        chosen["lifetime"] = duration
    if order == "total":
        chosen = {"founding": "agreed", "bootstrap_after": LISTEN, **chosen}
    keys = tuple(group_key(secret, group) for secret in _read_secrets(key))
    interval = suited.beacon if beacon is None else beacon
    settings = _settings(members, keys, store, log, redact, interval, identity, roster)
    settings = msgspec.structs.replace(
        settings,
        **_watched(log is not None, segment, metrics),
        terms={} if profile == "lan" else {"profile": profile},
    )
    if type(backlog) is not int or backlog <= 0:
        raise BadInput(f"backlog: expected a number of bytes, got {backlog!r}")
    settings = msgspec.structs.replace(settings, backlog=backlog)
    settings = _with_admin(settings, group, name, roster, admin)
    kept = _kept(order, retention, on_snapshot, on_restore, snapshot_from)
    settings = msgspec.structs.replace(settings, **kept)
    protocol = _protocol_for(order, duration, members, store is not None, chosen.get("founding") == "alone")
    return open_member(protocol, "node", group, name, chosen, transport, settings)


def _kept(
    order: Order,
    retention: Retention | None,
    on_snapshot: OnSnapshot | None,
    on_restore: OnRestore | None,
    snapshot_from: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the settings of history and state transfer. Raise BadInput if they make no sense."""
    if retention is not None and not isinstance(retention, Retention):
        raise BadInput(f"retention: expected a precede.Retention, got {retention!r}")
    if (on_snapshot is None) != (on_restore is None):
        raise BadInput("on_snapshot and on_restore go together: one makes the state that the other restores")
    for setting, function in (("on_snapshot", on_snapshot), ("on_restore", on_restore)):
        if function is not None and (not callable(function) or iscoroutinefunction(function)):
            raise BadInput(f"{setting}: expected a plain function, without async, got {function!r}")
    if on_restore is not None and order not in ("causal", "total"):
        raise BadInput(f"on_restore needs order='causal' or 'total', not {order!r}")
    if snapshot_from is not None:
        if on_restore is None:
            raise BadInput("snapshot_from needs on_restore")
        if isinstance(snapshot_from, str) or not all(isinstance(name, str) for name in snapshot_from):
            raise BadInput(f"snapshot_from: expected a list of names, got {snapshot_from!r}")
    return {
        "retention": Retention() if retention is None else retention,
        "on_snapshot": on_snapshot,
        "on_restore": on_restore,
        "snapshot_from": snapshot_from,
    }


_P = ParamSpec("_P")


def _without_await(make: Callable[_P, Group]) -> Callable[_P, BlockingGroup]:
    """Return a function with the same arguments that opens the group in a thread of its own."""

    def open_group(*given: _P.args, **named: _P.kwargs) -> BlockingGroup:
        """Become a member of a group at once, without `await`: for scripts and notebooks.

        The arguments are those of `join`. Use the result with `with`, or close it: see `BlockingGroup`.

        >>> import precede
        >>> with precede.open_group("picnic", "ana", key=bytes(32), order="causal") as group:
        ...     group.broadcast(b"who brings bread?")
        ...     print(next(group.messages(timeout=5)).payload)
        b'who brings bread?'
        """
        return BlockingGroup(lambda: make(*given, **named))

    open_group.__qualname__ = "open_group"
    open_group.__signature__ = signature(make).replace(return_annotation="BlockingGroup")  # type: ignore[attr-defined]
    return open_group


open_group = _without_await(join)


def _settings(
    members: Sequence[str],
    keys: tuple[bytes, ...],
    store: str | Path | None,
    log: str | Path | None,
    redact: bool,
    beacon: float,
    identity: bytes | None,
    roster: Mapping[str, bytes] | SignedRoster | None,
) -> MemberSettings:
    """Return the settings of a member over sockets. Raise BadInput if they contradict each other."""
    if (identity is None) != (roster is None):
        raise BadInput("identity and roster go together: one signs, the other says whose signatures count")
    _check_seconds("beacon", beacon)
    if redact and log is None:
        raise BadInput("redact: there is no log; it writes pseudonyms into the folder that log= names")
    return MemberSettings(
        members=members,
        keys=keys,
        store=None if store is None else Path(store),
        log=None if log is None else Path(log),
        redact=redact,
        beacon=beacon,
        identity=identity,
        roster=roster.members if isinstance(roster, SignedRoster) else roster,
    )


def _check_seconds(setting: str, seconds: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise BadInput(f"{setting}: expected more than 0 seconds, got {seconds!r}")


def _watched(logged: bool, segment: float | None, metrics: tuple[str, int] | None) -> dict[str, Any]:
    """Return the settings for those who watch a member. Raise BadInput if they are not usable."""
    if segment is not None:
        _check_seconds("segment", segment)
        if not logged:
            raise BadInput("segment: there is no log; it adds files to the folder that log= names")
    if metrics is not None:
        check_address("metrics", metrics)
    return {"segment": segment, "metrics": metrics}


def _with_admin(
    settings: MemberSettings,
    group: str,
    name: str,
    roster: Mapping[str, bytes] | SignedRoster | None,
    admin: bytes | None,
) -> MemberSettings:
    """Check a signed roster with its administrator's key. Return the settings with the key and the epochs."""
    if not isinstance(roster, SignedRoster):
        if admin is not None:
            raise BadInput("admin: needs a signed roster (precede keys sign)")
        return settings
    if admin is None:
        raise BadInput("roster: a signed roster needs admin=, the public key that signed it")
    roster.check(group, admin)
    enrolled = roster.since.get(name, 0)
    return msgspec.structs.replace(
        settings, admin=admin, epoch=roster.epoch, enrolled=enrolled, retired=roster.retired
    )


def open_member(
    protocol: str,
    role: str,
    group: str,
    name: str,
    options: Mapping[str, Any],
    transport: Transport,
    settings: MemberSettings,
    random: Random | None = None,
) -> Group:
    """Make a member that runs a protocol in one of its roles. `join` and the commands make theirs with this."""
    if settings.book is None:
        _check_members(name, settings)
    generator = random or SystemRandom()
    chosen = complete_options(protocol, options, transport)
    plan = plan_node(protocol, role, name, chosen, settings, generator)
    terms = {
        **settings.terms,
        "order": _ORDERS.get(protocol, protocol),
        "dissemination": dissemination_of(chosen),
    }
    lifetime = chosen.get("lifetime")
    if lifetime is not None:
        lifetime = parse_duration(lifetime) if isinstance(lifetime, str) else int(lifetime)
        terms["lifetime"] = format_duration(lifetime)

    def plan_lane(order: str) -> NodePlan:
        return plan_topics(order, protocol, name, options, transport, settings, generator)

    settings = msgspec.structs.replace(
        settings,
        protocol=plan.protocol,
        terms=terms,
        lifetime=lifetime if protocol == "delta_causal" else None,
        renewable=plan.renewable,
        after_copy=plan.after_copy,
        plan_lane=plan_lane if settings.wired is None and role == "node" else None,
    )
    return Group(group, name, plan.make_node, plan.codec, transport, settings)


def _check_members(name: str, settings: MemberSettings) -> None:
    """Raise BadInput if two members have one name, node id or key: they would be taken for one another."""
    roster = settings.roster or {}
    everybody = list(dict.fromkeys((name, *settings.members, *roster)))
    setting = "members"
    try:
        check_names(settings.members)
        setting = "roster"
        check_roster(roster)
        setting = "members, roster"
        check_names(everybody)
    except BadInput as error:
        raise BadInput(f"{setting}: {error}") from None
    if settings.roster is not None and settings.admin is None:
        strangers = [member for member in settings.members if member not in roster]
        if strangers:
            raise BadInput(f"members: the roster lacks {', '.join(strangers)}, whose messages would be refused")


def _check_names(group: object, name: object, members: Iterable[object]) -> None:
    for setting, text in (("group", group), ("name", name)):
        if not isinstance(text, str) or not text:
            raise BadInput(f"{setting}: expected a text that is not empty, got {text!r}")
    if isinstance(members, str) or not all(isinstance(member, str) for member in members):
        raise BadInput(f"members: expected a list of names, got {members!r}")


def _check_addresses(bind: object, peers: Iterable[object], lan: object) -> None:
    for peer in peers:
        check_address("peers", peer)
    for setting, address in (("bind", bind), ("lan", lan)):
        if address is not None:
            check_address(setting, address)


def _udp_transport(
    bind: tuple[str, int] | None, peers: Sequence[tuple[str, int]], lan: bool | tuple[str, int]
) -> UdpTransport:
    """Return a UDP transport on `bind`.

    Without `bind` it is on the loopback address if all peers are on this machine and there is no multicast.
    Otherwise it is on every interface.
    """
    multicast = LAN_GROUP if lan is True else lan or None
    _check_addresses(bind, peers, multicast)
    local = all(host == "localhost" or host.startswith("127.") for host, _ in peers)
    usual = ("127.0.0.1", 0) if local and multicast is None else ("", 0)
    return UdpTransport(bind or usual, peers, multicast)


def _read_secrets(key: bytes | str | Path | Sequence[bytes] | None) -> Sequence[bytes]:
    """Return the group's secrets, from a key file or as given. None gives no secrets: frames are not encrypted.

    Raise BadInput for an empty list, or for a secret that has not 32 bytes.
    """
    if key is None:
        return ()
    if isinstance(key, (str, Path)):
        return read_keys(Path(key))
    secrets = [key] if isinstance(key, bytes) else list(key)
    if not secrets:
        raise BadInput("key: the list is empty (key=None sends frames unencrypted)")
    for secret in secrets:
        if not isinstance(secret, bytes) or len(secret) != 32:
            size = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
            raise BadInput(f"key: expected 32 secret bytes (`precede keys make`), got {size}")
    return secrets


_ORDERS: Final = {protocol: order for order, protocol in PROTOCOLS.items()}


def _protocol_for(
    order: Order, lifetime: Duration | None, members: Sequence[str], stored: bool, alone: bool
) -> str:
    """Return the protocol that implements an order. Raise BadInput if the settings do not fit the order."""
    if order not in PROTOCOLS:
        near = did_you_mean(order, get_args(Order))
        raise BadInput(f"order: {order!r} is none of {', '.join(get_args(Order))}{near}")
    if order == "delta" and lifetime is None:
        raise BadInput("order='delta' needs a lifetime: how long a message may be waited for")
    if order not in ("delta", "none") and lifetime is not None:
        hint = ": order='delta' is causal order with lifetimes (it needs clocks that roughly agree)"
        raise BadInput(f"order={order!r} has no lifetime{hint if order == 'causal' else ''}")
    if order == "multicast" and not members:
        raise BadInput("order='multicast' needs members=[...], the names of those who can be addressed")
    if order == "multicast" and not stored:
        raise BadInput("order='multicast' needs store=...: senders address one incarnation of a member")
    if order == "total" and not members and not alone:
        raise BadInput("order='total' needs members=[...], the names of those who found the group")
    return PROTOCOLS[order]
