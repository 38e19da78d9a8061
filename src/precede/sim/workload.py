"""The workload: messages that applications broadcast at intervals, from a script, or as answers to deliveries.

Each node's application has its own named generators. The next message of a node is scheduled when the one
before it is broadcast, so a long run needs no more memory than a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from random import Random
from typing import Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Message
from precede.sim.networks.network import MESSAGES_BORN
from precede.sim.randomness import Distribution
from precede.sim.world import World

_AT_ONCE: Final = Distribution(0)
_RUNAWAY: Final = 100
_BEGINNING: Final = 10


class Birth(Struct, frozen=True):
    """One scripted message: when, by which node, to which destinations, with which lifetime."""

    at: Instant
    node: NodeId
    to: tuple[NodeId, ...] | None = None
    lifetime: Duration | None = None
    payload: bytes = b""


class Destinations(Struct, frozen=True):
    """How destinations are chosen: all nodes (`least` 0), or `least` to `most` other nodes at random.

    Nodes k, k + groups, k + 2 groups and so on form a group. With probability `selectivity` all destinations
    are in the sender's own group.
    """

    least: int = 0
    most: int = 0
    groups: int = 1
    selectivity: float = 0.0

    def choose(self, node: NodeId, nodes: int, random: Random) -> tuple[NodeId, ...] | None:
        """Draws the destinations of one message; None for all nodes."""
        if not self.least:
            return None
        step = self.groups if self.selectivity and random.random() < self.selectivity else 1
        candidates = range(node % step, nodes, step)
        count = self.least if self.most <= self.least else random.randint(self.least, self.most)
        chosen = random.sample(range(len(candidates) - 1), min(count, len(candidates) - 1))
        return tuple(sorted([candidates[place + (place >= node // step)] for place in chosen]))


class Workload:
    """Broadcasts messages: `gap` seconds between two of a node, the first `first` seconds after it entered.

    Node k sends at `rates[k % len(rates)]`, relative to the mean of the rates. With probability `replies` an
    application answers a delivery with a message of its own, after `reply_after` seconds.

    Answers are answered too. If each message causes more than one answer on average, their number grows
    without limit. That average is known only in the run, because in a network of contacts a message may reach
    few nodes. So a run is stopped with the error of `refuse` when it has a hundred answers per other message;
    answers that die out get there only if 99 of 100 messages cause another. Two nodes that answer each other
    once per message may go on as long as each answer takes time.
    """

    def __init__(
        self,
        gap: Distribution | None = None,
        first: Distribution | None = None,
        count: int | None = None,
        until: Instant | None = None,
        size: int = 100,
        script: Sequence[Birth] = (),
        replies: float = 0.0,
        reply_after: Distribution | None = None,
        destinations: Destinations | None = None,
        lifetime: Distribution | None = None,
        sources: Sequence[NodeId] = (),
        rates: Sequence[float] = (1.0,),
        refuse: Callable[[str], BadInput] = BadInput,
    ) -> None:
        self._gap = gap
        self._first = first or gap
        self._count = count
        self._until = until
        self._payload = bytes(size)
        self._script = script
        self._replies = replies
        self._reply_after = reply_after or Distribution(0)
        self._destinations = destinations or Destinations()
        self._lifetime = lifetime
        self._sources = dict.fromkeys(sources)
        self._receivers = min(self._destinations.most or len(sources), max(len(self._sources) - 1, 0))
        self._rates = rates
        self._refuse = refuse
        self._unprompted = len(script) + _BEGINNING
        self._answers = 0
        self._answers_since: Instant = 0
        self._broadcasts: dict[NodeId, int] = {}
        self._applications: dict[NodeId, _Application] = {}

    @property
    def last_scripted(self) -> Instant:
        """When the last scripted message is broadcast; 0 without a script."""
        return max((birth.at for birth in self._script), default=0)

    @property
    def is_for_all(self) -> bool:
        """True if every message goes to all nodes."""
        return not self._destinations.least and all(birth.to is None for birth in self._script)

    @property
    def is_endless(self) -> bool:
        """True if messages may go on for as long as the world runs."""
        talks_on = self._gap is not None and self._count is None and bool(self._sources)
        return self._until is None and (talks_on or self._replies * self._receivers >= 1)

    def begin(self, world: World) -> None:
        """Schedules the scripted messages, and listens to deliveries if applications answer."""
        self._world = world
        for birth in self._script:
            world.schedule_phase(
                MESSAGES_BORN,
                birth.at,
                world.broadcast,
                birth.node,
                birth.payload or self._payload,
                birth.to,
                birth.lifetime,
            )
        if self._replies:
            world.on_deliver = self._answer

    def node_entered(self, node: NodeId) -> None:
        """Schedules the first message of a node that has entered, if its application sends at intervals."""
        if self._gap is not None and node in self._sources and self._broadcasts.get(node, 0) != self._count:
            self._schedule(node, self._application(node).first())

    def _application(self, node: NodeId) -> _Application:
        application = self._applications.get(node)
        if application is None:
            slower = sum(self._rates) / len(self._rates) / self._rates[node % len(self._rates)]
            gap = None if self._count == 1 else self._gap  # its generator would never draw
            application = self._applications[node] = _Application(
                self._world, node, gap, self._first, self._reply_after, self._lifetime, slower
            )
        return application

    def _schedule(self, node: NodeId, after: Duration) -> None:
        at = self._world.now + after
        if self._until is None or at <= self._until:
            self._world.schedule_phase(MESSAGES_BORN, at, self._birth, node)

    def _birth(self, node: NodeId) -> None:
        hosted = self._world.nodes[node]
        if hosted.gone:
            return
        self._broadcasts[node] = count = self._broadcasts.get(node, 0) + 1
        self._unprompted += 1
        self._send(node)
        if self._count is None or count < self._count:
            self._schedule(node, self._application(node).gap())

    def _send(self, node: NodeId) -> None:
        application = self._application(node)
        to = None
        if self._destinations.least:
            to = self._destinations.choose(node, len(self._world.nodes), application.random)
        lifetime = application.lifetime() if application.lifetime is not None else None
        self._world.broadcast(node, self._payload, to, lifetime)

    def _answer(self, node: NodeId, message: Message) -> None:
        if message.id.source == node or node not in self._sources:
            return
        application = self._application(node)
        if application.random.random() < self._replies:
            at = self._world.now + application.reply_after()
            if self._until is None or at <= self._until:
                self._count_answer()
                self._world.schedule_phase(MESSAGES_BORN, at, self._send, node)

    def _count_answer(self) -> None:
        """Counts an answer. Raises the error of `refuse` if the answers of this run grow without end."""
        self._answers += 1
        if self._answers <= _RUNAWAY * self._unprompted:
            return
        each, now = self._replies * self._receivers, self._world.now
        if each <= 1 and now > self._answers_since:
            self._answers, self._answers_since = 0, now
            return
        raise self._refuse(
            f"{self._answers:,} answers to {self._unprompted - _BEGINNING:,} messages within {now / SECOND:g} s"
            f": each message causes up to {each:.3g} answers, and these cause more, without end "
            f"(below 1/{self._receivers} they die out)"
        )


class _Application:
    """The application of one node: its own generators for gaps, answers and lifetimes."""

    def __init__(
        self,
        world: World,
        node: NodeId,
        gap: Distribution | None,
        first: Distribution | None,
        reply_after: Distribution,
        lifetime: Distribution | None,
        slower: float,
    ) -> None:
        self._world = world
        self._node = node
        generators = world.generators
        unit = round(SECOND * slower)
        self.gap = (gap or _AT_ONCE).drawing(generators, "workload", node, unit=unit)
        self.first = (first or _AT_ONCE).drawing(generators, "workload-first", node, unit=unit)
        self.reply_after = reply_after.drawing(generators, "reply", node)
        self.lifetime: Callable[[], int] | None = (
            None if lifetime is None else lifetime.drawing(generators, "lifetime", node)
        )

    @cached_property
    def random(self) -> Random:
        """For destinations and answers. Few workloads have any, and seeding it takes longer than a packet."""
        return self._world.generators.python("application", self._node)
