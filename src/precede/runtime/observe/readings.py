"""What one member shows: its metrics as families, and its status as plain data for programs.

Labels have bounded numbers of values: kinds, causes and registries are words of the program, neighbours are
listed up to `MOST_NAMED`. Nothing here changes the member, and nothing is computed until somebody asks.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence, Sized
from typing import Any, Final, Protocol

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.core.node import Waiting
from precede.runtime.driver import Driver
from precede.runtime.links.neighbours import Links
from precede.runtime.observe.families import Family, Labels, labelled, single
from precede.runtime.observe.process import free_bytes, process_families, store_bytes
from precede.runtime.observe.traffic import Traffic
from precede.runtime.settings import MemberSettings
from precede.runtime.store import Store

MOST_NAMED: Final = 64
"""How many neighbours are named in metrics, and how many waiting messages in a status."""
MOST_STREAMS: Final = 1024
"""Of how many streams the last delivered number is remembered: those that were delivered from last."""


class OrderLane(Protocol):
    """What carries the topics of one order: its deliveries, and the driver of its node."""

    order: str
    deliveries: int
    driver: Driver


class Readings:
    """Counts what a member delivers, and reads everything else when asked."""

    def __init__(
        self,
        name: str,
        settings: MemberSettings,
        driver: Driver,
        links: Sequence[Links],
        name_of: Callable[[NodeId], str],
        deliveries: Sized,
        warnings: Sized,
    ) -> None:
        self.broadcasts = 0
        self.deliveries = 0
        self.failed = False
        self.links_lost = 0
        self.given_up: Counter[str] = Counter()
        self.lanes: Callable[[], Sequence[OrderLane]] = lambda: ()
        self._last: OrderedDict[tuple[NodeId, int], int] = OrderedDict()
        self._name = name
        self._settings = settings
        self._driver = driver
        self._links = links
        self._name_of = name_of
        self._untaken = deliveries
        self._warnings = warnings

    def delivered(self, message: Message) -> None:
        """Count a delivery, and remember how far its stream was delivered."""
        self.deliveries += 1
        id = message.id
        stream = (id.source, id.incarnation)
        if self._last.get(stream, 0) < id.number:
            self._last[stream] = id.number
            if len(self._last) > MOST_STREAMS:
                self._last.popitem(last=False)

    @property
    def order(self) -> str:
        return self._settings.terms.get("order", "")

    def waiting(self) -> list[Waiting]:
        """Return the messages that wait, the one that waits longest first."""
        waiting = [item for driver in self._drivers() for item in driver.node.waiting()]
        return sorted(waiting, key=lambda item: item.since)

    def _drivers(self) -> list[Driver]:
        return [self._driver, *(lane.driver for lane in self.lanes())]

    def by_order(self) -> Counter[str]:
        """Return how many messages were delivered, in the group itself and in topics, by order."""
        counts = Counter({self.order: self.deliveries})
        for lane in self.lanes():
            counts[lane.order] += lane.deliveries
        return counts

    def neighbours(self) -> list[str]:
        return [self._name_of(node) for links in self._links for node in links.neighbours()]

    def refused(self) -> Counter[str]:
        """Return how many frames and packets were refused, by cause."""
        dropped = [Counter(links.dropped()) for links in self._links]
        return sum((*dropped, *(driver.dropped for driver in self._drivers())), Counter())

    def frames(self) -> Traffic:
        total = Traffic()
        for links in self._links:
            total.count += links.tap.frames.count
            total.bytes += links.tap.frames.bytes
        return total

    def families(self) -> list[Family]:
        """Return the metrics of this member and of its process."""
        return [
            *self._order_families(),
            *self._traffic_families(),
            *self._store_families(),
            *process_families(),
        ]

    def _order_families(self) -> list[Family]:
        waiting, neighbours, named = self.waiting(), self.neighbours(), (("order", self.order),)
        return [
            labelled("precede_deliveries_total", "counter", "messages delivered", "order", self.by_order()),
            Family("precede_broadcasts_total", "counter", "own messages sent", {named: self.broadcasts}),
            labelled("precede_given_up_total", "counter", "messages given up", "reason", self.given_up),
            single("precede_waiting", "gauge", "messages received and not delivered yet", len(waiting)),
            single(
                "precede_oldest_wait_seconds", "gauge", "how long the oldest message waits", self._age(waiting)
            ),
            single("precede_untaken", "gauge", "messages the application has not taken", len(self._untaken)),
            single("precede_neighbours", "gauge", "members that are heard now", len(neighbours)),
            single("precede_links_lost_total", "counter", "links that went down", self.links_lost),
            labelled(
                "precede_neighbour",
                "gauge",
                f"1 for each of the first {MOST_NAMED} neighbours",
                "peer",
                dict.fromkeys(neighbours[:MOST_NAMED], 1),
            ),
            single("precede_warnings", "gauge", "warnings about the set-up of the group", len(self._warnings)),
        ]

    def _traffic_families(self) -> list[Family]:
        frames, packets = self.frames(), Traffic()
        for driver in self._drivers():
            packets.count += driver.packets.count
            packets.bytes += driver.packets.bytes
        handshakes: Counter[str] = sum((links.handshakes for links in self._links), Counter())
        return [
            _traffic("precede_frames_total", "frames on the wire", frames.count),
            _traffic("precede_frame_bytes_total", "bytes of frames on the wire", frames.bytes),
            _traffic("precede_packets_total", "packets of the protocol", packets.count),
            _traffic("precede_packet_bytes_total", "bytes of packets, sent ones with frames", packets.bytes),
            labelled("precede_refused_total", "counter", "frames and packets refused", "cause", self.refused()),
            labelled("precede_handshakes_total", "counter", "handshakes", "event", handshakes),
        ]

    def _store_families(self) -> list[Family]:
        sizes = {name: float(size) for name, size in self._driver.node.sizes().items()}
        families = [
            labelled("precede_entries", "gauge", "entries of the protocol's registries", "registry", sizes),
            single(
                "precede_store_failed", "gauge", "1 after the store failed: the member stopped", self.failed
            ),
        ]
        store = self._driver.store
        if isinstance(store, Store):
            families += [
                single("precede_store_bytes", "gauge", "size of the store's files", store_bytes(store.path)),
                single("precede_store_free_bytes", "gauge", "free bytes on its disk", free_bytes(store.path)),
            ]
        return families

    def status(self) -> dict[str, Any]:
        """Return what `precede top` shows of a member, as plain data."""
        waiting, now, frames = self.waiting(), self._settings.clock(), self.frames()
        return {
            "member": self._name,
            "order": self.order,
            "incarnation": self._driver.incarnation,
            "failed": self.failed,
            "neighbours": self.neighbours(),
            "broadcasts": self.broadcasts,
            "deliveries": self.by_order().total(),
            "untaken": len(self._untaken),
            "waiting": len(waiting),
            "oldest_wait_s": self._age(waiting),
            "waits": [self._wait(item, now) for item in waiting[:MOST_NAMED]],
            "delivered": {
                f"{self._name_of(source)}/{incarnation}": number
                for (source, incarnation), number in self._last.items()
            },
            "frames": _by_direction(frames.count),
            "bytes": _by_direction(frames.bytes),
            "refused": dict(sorted(self.refused().items())),
            "warnings": len(self._warnings),
        }

    def _wait(self, item: Waiting, now: Instant) -> dict[str, Any]:
        return {
            "message": self._written(item.message),
            "for": [self._written(id) for id in item.waits_for[:4]],
            "since_s": max(0, now - item.since) / 1e6,
        }

    def _written(self, id: MessageId) -> str:
        return f"{self._name_of(id.source)}:{id.number}"

    def _age(self, waiting: Sequence[Waiting]) -> float:
        return max(0, self._settings.clock() - waiting[0].since) / 1e6 if waiting else 0.0


def _traffic(name: str, meaning: str, values: Counter[tuple[str, str]]) -> Family:
    samples: dict[Labels, float] = {
        (("direction", direction), ("kind", kind)): value for (direction, kind), value in sorted(values.items())
    }
    return Family(name, "counter", meaning, samples)


def _by_direction(values: Counter[tuple[str, str]]) -> dict[str, int]:
    sums = {"in": 0, "out": 0}
    for (direction, _), value in values.items():
        sums[direction] += value
    return sums
