"""A group as an application sees it: join, broadcast, take what is delivered, ask what still waits.

`open_group` puts the pieces together: node, driver, store, links, transport, event log. Everything runs on the
caller's event loop; no thread, no global state.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal
from weakref import ref

from msgspec import Struct

from precede.core.effects import RADIO, WIRED, Medium
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MILLISECOND, Duration, Instant, parse_duration
from precede.core.messages import Message
from precede.core.node import Node, Waiting
from precede.runtime.codec import Codec
from precede.runtime.driver import Driver, wall_clock
from precede.runtime.emulation.transfers import Transfers
from precede.runtime.links.authorship import Authors
from precede.runtime.links.inspection import Inspection
from precede.runtime.links.neighbours import Links
from precede.runtime.links.sealing import KEY_BYTES, OVERHEAD, OpenDoor, Sealer
from precede.runtime.rows import SEGMENT_ROWS, KeptRows, write_segment
from precede.runtime.store import NoStore, Store, StoreFailed
from precede.runtime.transports.transport import Transport

MOST_UNTAKEN: Final = 100_000
MOST_IN_MEMORY: Final = 1_000
"""So many delivered messages wait in memory; with a store, those behind them wait there."""

MOST_PAYLOAD: Final = 1_000_000
"""A packet has 1 MiB; the rest is for what orders the message."""


class Delivered(Struct, frozen=True):
    """A message in its place. `source` is the sender's name as far as it is known."""

    source: str
    number: int
    payload: bytes
    id: MessageId


class Arrival(Struct, frozen=True):
    """A message the moment it is in hand, and again when its place is final or it is given up."""

    source: str
    payload: bytes
    id: MessageId
    state: Literal["waiting", "delivered", "given_up"]
    waits_for: tuple[MessageId, ...] = ()


def node_id(name: str) -> NodeId:
    """A name as a node id: 31 bits of its hash, the same everywhere."""
    return int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big") >> 1


def group_key(key: bytes, group: str) -> bytes:
    """The key of one group: the same secret gives different groups different keys."""
    return blake2b(b"precede group" + group.encode(), key=key, digest_size=KEY_BYTES).digest()


def _lifetime(written: str | Duration | None) -> Duration | None:
    lifetime = parse_duration(written) if isinstance(written, str) else written
    if lifetime is not None and lifetime < MILLISECOND:
        raise Refused(f"a lifetime of {lifetime} microseconds: write it with its unit, '20s'")
    return lifetime


class Loop:
    """One loop over what is delivered to a group."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def __aiter__(self) -> Loop:
        return self

    async def __anext__(self) -> Delivered:
        return await self._group.take(self)


class Group:
    """One member's view. Use it as `async with`; iterate over it to take what is delivered.

    `book` gives members' ids where a protocol wants small ones; elsewhere they come from the names. A second
    transport, `wired`, is for nodes that have both (a station); with `wires` no packet is taken until so many
    neighbours were heard on it, for what a node floods before it knows a neighbour never gets there.
    `links` says how neighbours are found: `by_hand`, `patient` and `alone` of `runtime.links`.
    `life` fixes the incarnation of a node without store.
    With `segment` the event log grows by a file every so many seconds, else by many rows at once.
    `transfers` is told what crosses the links.
    With an `identity` and a `roster`, messages are signed by their authors (`runtime.authorship`).
    A store belongs to one member, group and `protocol`.

    One loop at a time takes the messages: asking for the next one says that it is done with the last. What an
    application does not take waits: with a store on disk, else in memory (`status()["untaken"]`).
    """

    def __init__(
        self,
        group: str,
        name: str,
        make_node: Callable[[NodeId, int], Node],
        codec: Codec,
        transport: Transport,
        *,
        wired: Transport | None = None,
        wires: int = 0,
        keys: tuple[bytes, ...] = (),
        store: Path | None = None,
        log: Path | None = None,
        log_packets: bool = True,
        names: Sequence[str] = (),
        book: Mapping[str, NodeId] | None = None,
        beacon: float = 0.5,
        clock: Callable[[], Instant] = wall_clock,
        speed: float = 1.0,
        life: int | None = None,
        synchronous: bool = True,
        links: Mapping[str, bool] | None = None,
        keep_rows: bool = False,
        segment: float | None = None,
        identity: bytes | None = None,
        roster: Mapping[str, bytes] | None = None,
        transfers: Transfers | None = None,
        protocol: str = "",
    ) -> None:
        self.name = name
        self.group = group
        self._id_of: Callable[[str], NodeId] = node_id if book is None else book.__getitem__
        self.id = self._id_of(name)
        self._names: dict[NodeId, str] = {self._id_of(known): known for known in (name, *names, *(book or ()))}
        self._beacon = beacon
        self._log = log
        self._segment = segment
        # members that came together do not write together
        self._segment_due = time.monotonic() + (segment or 0.0) * random.uniform(0.5, 1.0)
        kept = log is not None or keep_rows
        if log is not None:
            try:
                log.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadInput(f"{log}: no folder for an event log: {error.strerror}") from error
        memory: Store | NoStore = NoStore(life)
        if store is not None:
            memory = Store(store, synchronous=synchronous)
            memory.belong({"group": group, "member": name, "protocol": protocol})
        self._driver = Driver(
            lambda life: make_node(self.id, life),
            codec,
            memory,
            clock,
            KeptRows(self.name_of, log_packets) if kept else None,
            speed,
            wires,
        )
        self._driver.node_id = self.id
        self._driver.transfers = transfers
        authors = None
        if identity is not None and roster is not None:
            keys_by_node = {self._id_of(known): public for known, public in roster.items()}
            authors = Authors(group, self.id, identity, keys_by_node)
            self._names.update((self._id_of(known), known) for known in roster)
        self._driver.inspection = Inspection(self.id, self._driver.incarnation, authors)
        self._doors: list[Sealer | OpenDoor] = []
        self._driver.on_deliver = self._delivered
        self._driver.on_arrive = self._arrived
        self._driver.on_discard = self._discarded
        self._driver.on_failure = self._fail
        self._transports = [transport]
        self._links = self._join_links(transport, keys, links or {}, RADIO)
        self._all_links = [self._links]
        self._driver.outside = {RADIO: self._links, WIRED: self._links}
        if wired is not None:
            self._transports.append(wired)
            self._wires = self._join_links(wired, keys, {"patient": True}, WIRED)
            self._all_links.append(self._wires)
            self._driver.outside[WIRED] = self._wires
        self._untaken: deque[tuple[int, Message]] = deque()
        self._in_memory = 0
        self._behind = 0
        self._loop: ref[Loop] | None = None
        self._asked = False
        self._fresh = asyncio.Event()
        self._last_given: int | None = None
        self._listeners: list[asyncio.Queue[Arrival | None]] = []
        self._failure: StoreFailed | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._crashed = False
        self._state: Literal["new", "open", "closed"] = "new"

    def _join_links(
        self, transport: Transport, keys: tuple[bytes, ...], how: Mapping[str, bool], over: Medium
    ) -> Links:
        driver = self._driver
        door: Sealer | OpenDoor = OpenDoor(self.id)
        if keys:
            door = Sealer(self.id, keys, driver.store.remembered("boot", 0))
            driver.store.remember("boot", door.boot)
            driver.store.commit()
        self._doors.append(door)
        return Links(
            transport,
            door,
            OVERHEAD,
            lambda data, sender: driver.packet(data, sender, over),
            lambda peer: driver.link_up(peer, over),
            lambda peer: driver.link_down(peer, over),
            driver.left,
            by_hand=how.get("by_hand", False),
            patient=how.get("patient", False),
            alone=how.get("alone", False),
        )

    async def __aenter__(self) -> Group:
        if self._state != "new":
            raise RuntimeError(f"{self.name}: joined before; join() again for another stay")
        self._state = "open"
        try:
            for transport, links in zip(self._transports, self._all_links, strict=True):
                await transport.start(links.frame)
            self._driver.start()
        except BaseException:
            await self.crash()
            raise
        self._ticking = asyncio.get_running_loop().create_task(self._tick())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Who failed over a message is not done with it: it comes again, as after a crash."""
        if kind is not None:
            self._last_given = None
        await self.close()

    async def close(self) -> None:
        """Stop; with a store, the next `join` goes on where this one ended."""
        if self._crashed or self._state == "closed":
            return
        self._state = "closed"
        self._fresh.set()
        self._tell_all(None)
        if self._failure is not None:
            await self.crash()
            return
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        if self._last_given is not None:
            self._driver.taken(self._last_given)
        for links in self._all_links:
            links.stop()
        try:
            self._driver.stop()
            self._write_segment()
            self._driver.store.close()
        finally:
            for transport in self._transports:
                await transport.stop()

    async def crash(self) -> None:
        """Stop as if killed: what was not committed is gone. For emulations."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._crashed = True
        for links in self._all_links:
            links.stop()
        self._driver.crash()
        for transport in self._transports:
            await transport.stop()

    def leave(self) -> None:
        """For good: the node says so to the others, if its protocol has a way to."""
        self._driver.leave()

    async def broadcast(self, payload: bytes, lifetime: str | Duration | None = None) -> None:
        """To everybody. Waits while the application is far behind in taking what was delivered."""
        self._check_works()
        self._driver.broadcast(self._checked(payload), None, _lifetime(lifetime))
        await self._breathe()

    async def multicast(
        self, payload: bytes, to: Sequence[str], lifetime: str | Duration | None = None
    ) -> None:
        """To these members only, in causal order with all they see."""
        self._check_works()
        if isinstance(to, str):
            raise TypeError(f"to is a list of names: [{to!r}]")
        try:
            ids = sorted(self._id_of(name) for name in to)
            self._driver.broadcast(self._checked(payload), ids, _lifetime(lifetime))
        except (KeyError, Refused) as error:
            unknown = [name for name in to if name not in self._names.values()]
            if unknown and (isinstance(error, KeyError) or "address book" in str(error)):
                raise Refused(f"no member is known by the name {unknown[0]!r}: {error}") from error
            raise
        await self._breathe()

    def _checked(self, payload: object) -> bytes:
        """What others could not read would be waited for by all that follows it."""
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            hint = ": encode it" if isinstance(payload, str) else ""
            raise TypeError(f"a payload is bytes, not {type(payload).__name__}{hint}")
        most = min(MOST_PAYLOAD, *(links.largest_packet * 9 // 10 for links in self._all_links))
        if len(payload) > most:
            raise Refused(f"a payload of {len(payload):,} bytes does not fit into a packet (at most {most:,})")
        return bytes(payload)

    def __aiter__(self) -> AsyncIterator[Delivered]:
        return Loop(self)

    async def take(self, loop: Loop) -> Delivered:
        """The next message for a loop, once there is one. Asking says that the last one is done with."""
        current = None if self._loop is None else self._loop()
        if self._asked or (current is not None and current is not loop):
            raise RuntimeError(f"{self.name}: another loop takes the messages of this group already")
        self._loop, self._asked = ref(loop), True
        try:
            return await self._next()
        finally:
            self._asked = False

    async def _next(self) -> Delivered:
        if self._last_given is not None:
            self._driver.taken(self._last_given)
            self._last_given = None
        while not self._untaken:
            if self._state == "closed" and self._failure is None:
                raise StopAsyncIteration
            self._check_works()
            if self._behind:
                self._fetch()
            else:
                self._fresh.clear()
                await self._fresh.wait()
        place, message = self._untaken.popleft()
        self._last_given = place
        return Delivered(self.name_of(message.id.source), message.id.number, message.payload, message.id)

    def _fetch(self) -> None:
        """The next ones that wait in the store."""
        found = self._driver.undelivered(self._in_memory, min(self._behind, MOST_IN_MEMORY))
        self._untaken += found
        self._in_memory = found[-1][0]
        self._behind -= len(found)

    async def arrivals(self) -> AsyncIterator[Arrival]:
        """Every message the moment it is received, and again when its place is final or given up."""
        self._check_works()
        queue: asyncio.Queue[Arrival | None] = asyncio.Queue(MOST_UNTAKEN)
        self._listeners.append(queue)
        try:
            while (arrival := await queue.get()) is not None:
                yield arrival
            if self._failure is not None:
                raise StoreFailed(str(self._failure))
        finally:
            self._listeners.remove(queue)

    def waiting(self) -> Sequence[Waiting]:
        """What is in hand and cannot be shown yet: for which messages it waits, since when, until when."""
        return self._driver.node.waiting()

    def neighbours(self) -> list[str]:
        """Who can be heard now."""
        return [self.name_of(node) for links in self._all_links for node in links.neighbours()]

    def status(self) -> dict[str, Any]:
        """What a look from outside shows: neighbours, sizes, what waits, what was dropped and why."""
        return {
            "name": self.name,
            "id": self.id,
            "incarnation": self._driver.incarnation,
            "neighbours": self.neighbours(),
            "sizes": dict(self._driver.node.sizes()),
            "waiting": len(self.waiting()),
            "untaken": len(self._untaken) + self._behind,
            "dropped": dict(sum((Counter(links.dropped()) for links in self._all_links), self._driver.garbled)),
        }

    def rekey(self, *secrets: bytes) -> None:
        """The group has new keys, newest first: the first seals from now on, any of them opens."""
        for door in self._doors:
            if isinstance(door, Sealer):
                door.rekey(tuple(group_key(secret, self.group) for secret in secrets))

    def name_of(self, node: NodeId) -> str:
        """A member's name, or its number when nobody told us."""
        return self._names.get(node, f"{node:08x}")

    @property
    def links(self) -> Links:
        """The links, for whoever emulates contacts."""
        return self._links

    @property
    def driver(self) -> Driver:
        """The driver, for whoever emulates crashes and contacts."""
        return self._driver

    def _segment_is_due(self) -> bool:
        """Enough rows, or (for whoever reads along) enough time."""
        if self._segment is not None and time.monotonic() > self._segment_due:
            self._segment_due = time.monotonic() + self._segment
            self._driver.log_rows()
            return self._driver.rows_logged > 0
        return self._driver.rows_logged > SEGMENT_ROWS

    def _write_segment(self) -> None:
        if self._log is not None:
            write_segment(self._driver.store, self._log, self.group, self.name)

    def _delivered(self, place: int, message: Message) -> None:
        if self._behind or (len(self._untaken) >= MOST_IN_MEMORY and self._driver.keeps):
            self._behind += 1
        else:
            self._untaken.append((place, message))
            self._in_memory = place
        self._fresh.set()
        self._tell(message, "delivered", ())

    def _arrived(self, message: Message) -> None:
        if self._listeners:
            asyncio.get_running_loop().call_soon(self._tell_waiting, message)

    def _tell_waiting(self, message: Message) -> None:
        for item in self.waiting():
            if item.message == message.id:
                self._tell(message, "waiting", item.waits_for)

    def _discarded(self, message: Message, reason: str) -> None:
        self._tell(message, "given_up", ())

    def _tell(
        self, message: Message, state: Literal["waiting", "delivered", "given_up"], lacks: tuple[MessageId, ...]
    ) -> None:
        if self._listeners:
            self._tell_all(Arrival(self.name_of(message.id.source), message.payload, message.id, state, lacks))

    def _tell_all(self, news: Arrival | None) -> None:
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()  # who does not listen loses the oldest news, nobody's memory
            queue.put_nowait(news)

    def _fail(self, error: StoreFailed) -> None:
        """The store does not work: to the others this member has crashed, and the application is told."""
        self._failure = error
        for links in self._all_links:
            links.stop()
        self._fresh.set()
        self._tell_all(None)

    def _check_works(self) -> None:
        if self._failure is not None:
            raise StoreFailed(str(self._failure))
        if self._state != "open":
            how = "not joined yet: use it as `async with`" if self._state == "new" else "left already"
            raise RuntimeError(f"{self.name}: {how}")

    async def _breathe(self) -> None:
        """Let others run; when far too much is untaken, wait for the application to catch up."""
        await asyncio.sleep(0)
        while len(self._untaken) + self._behind > MOST_UNTAKEN:
            await asyncio.sleep(0.01)

    async def _tick(self) -> None:
        while self._failure is None:
            for links in self._all_links:
                links.tick()
            if self._log is not None and self._segment_is_due():
                self._driver.rows_logged = 0
                self._try_segment()
            await asyncio.sleep(self._beacon)

    def _try_segment(self) -> None:
        """A log that cannot be written now stays in the store, and is written with the next segment."""
        try:
            self._write_segment()
        except StoreFailed as error:
            self._driver.fail(error)
        except OSError:
            self._driver.garbled["log_unwritten"] += 1
            self._driver.rows_logged += 1  # there is still something to write
