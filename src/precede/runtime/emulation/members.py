"""Real nodes put through a plan: links opened and closed, messages said, lives begun and ended, by the clock.

Any number of nodes share a process and an event loop; all processes of an emulation share one epoch and one
speed. Both ends of a link change it by their own schedule, at the same instant of the same clock; whoever hears
a frame first makes up what is due, so that neither end ever hears the other too early.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from precede.core.effects import RADIO
from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant
from precede.core.plan import LinkChange, Plan, Said, Stay
from precede.runtime.group import Group
from precede.runtime.transports.udp import Address

_RETRY: int = 20 * MILLISECOND
_PATIENCE: int = 60 * SECOND


class Clock(Struct, frozen=True):
    """The world's time: `speed` seconds of it pass in one of the machine's, from `epoch` (wall clock) on."""

    epoch: Instant
    speed: float = 1.0

    def now(self) -> Instant:
        return int((time.time_ns() // 1000 - self.epoch) * self.speed)

    async def until(self, at: Instant) -> None:
        while (left := at - self.now()) > 0:
            await asyncio.sleep(left / SECOND / self.speed)


class Tally(Struct):
    """What the nodes of one process have done; `late_us` is the most that anything came too late:
    a message said, a link opened or closed."""

    up: int = 0
    said: int = 0
    refused: int = 0
    delivered: int = 0
    late_us: int = 0


class Emulated:
    """The nodes of one process."""

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[NodeId],
        open_group: Callable[[NodeId], Group],
        places: Mapping[NodeId, Address],
        clock: Clock,
        again: bool = False,
    ) -> None:
        """`again`: the nodes lived before, in a process that was killed; what is past is not said again."""
        self._since = clock.now() if again else 0
        self.tally = Tally()
        self.groups: dict[NodeId, Group] = {}
        self._plan = plan
        self._open_group = open_group
        self._places = places
        self._clock = clock
        self._nodes = {node: _Script(plan, node) for node in nodes}

    async def run(self, until: Instant) -> None:
        """Everybody through the plan, up to an instant; then all stop in good order."""
        lives = [asyncio.create_task(self._lives(node, until)) for node in self._nodes]
        try:
            await asyncio.gather(*lives)
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)

    async def _lives(self, node: NodeId, until: Instant) -> None:
        """One after the other; a life that should have ended before this process began is not lived."""
        for stay in self._nodes[node].stays:
            end = until if stay.end is None else min(stay.end, until)
            if end <= self._clock.now():
                continue
            await self._clock.until(stay.start)
            await self._live(node, stay, end)

    async def _live(self, node: NodeId, stay: Stay, end: Instant) -> None:
        group, script = self._open_group(node), self._nodes[node]
        links = _LinkSchedule(group, script.links, node, self._places, self._clock, self._was_late)
        group.links.on_tick = links.make_up
        crashed = False
        async with group:
            self.groups[node] = group
            self.tally.up += 1
            tasks = [
                asyncio.create_task(work)
                for work in (links.run(), self._say(node, stay.start, stay.end), self._take(group))
            ]
            try:
                await self._clock.until(end)
                if stay.end == end and stay.ends == "left":
                    group.leave()
                    await self._clock.until(min(end + self._plan.linger, self._plan.end))
                crashed = stay.end == end and stay.ends == "crashed"
            finally:
                self.tally.up -= 1
                self.groups.pop(node, None)
                for task in tasks:
                    task.cancel()
                if crashed:
                    await group.crash()

    async def _say(self, node: NodeId, start: Instant, end: Instant | None) -> None:
        group, script = self.groups[node], self._nodes[node]
        since = max(self._since, start)
        for said in script.said:
            if said.at < since or (end is not None and said.at > end):
                continue
            await self._clock.until(said.at)
            while not self._said(group, said):
                await asyncio.sleep(_RETRY / SECOND / self._clock.speed)
            await asyncio.sleep(0)

    def _said(self, group: Group, said: Said) -> bool:
        """True when it is over, one way or the other."""
        late = self._clock.now() - said.at
        self._was_late(late)
        try:
            group.driver.broadcast(bytes(said.size), said.to, said.lifetime)
        except Refused:
            if late < _PATIENCE:
                return False
            self.tally.refused += 1
            return True
        self.tally.said += 1
        return True

    def _was_late(self, late: Duration) -> None:
        self.tally.late_us = max(self.tally.late_us, late)

    async def _take(self, group: Group) -> None:
        async for _ in group:
            self.tally.delivered += 1


class _Script:
    """One node's part of a plan."""

    def __init__(self, plan: Plan, node: NodeId) -> None:
        self.stays = [stay for stay in plan.stays if stay.node == node]
        self.said = [said for said in plan.said if said.node == node]
        self.links = [link for link in plan.links if link.over == RADIO and node in (link.a, link.b)]


class _LinkSchedule:
    """Opens and closes one node's links in time; a node that begins late finds them as they are by then."""

    def __init__(
        self,
        group: Group,
        changes: Sequence[LinkChange],
        node: NodeId,
        places: Mapping[NodeId, Address],
        clock: Clock,
        was_late: Callable[[Duration], None],
    ) -> None:
        """`was_late` is told how late a change came, but for those of before this life."""
        self._since = clock.now()
        self._tell_late = was_late
        self._group = group
        self._changes = changes
        self._node = node
        self._places = places
        self._clock = clock
        self._next = 0

    def make_up(self) -> None:
        """Everything that is due; of several changes of one link only the last counts."""
        now = self._clock.now()
        if self._next >= len(self._changes) or self._changes[self._next].at > now:
            return
        self._was_late(now - self._changes[self._next].at)
        last = dict[NodeId, bool]()
        while self._next < len(self._changes) and self._changes[self._next].at <= now:
            change = self._changes[self._next]
            self._next += 1
            last[change.b if change.a == self._node else change.a] = change.up
        for peer, up in last.items():
            if up:
                self._group.links.open(peer, self._places[peer])
            else:
                self._group.links.close(peer)

    def _was_late(self, late: Duration) -> None:
        if self._changes[self._next].at >= self._since:
            self._tell_late(late)

    async def run(self) -> None:
        while self._next < len(self._changes):
            self.make_up()
            if self._next < len(self._changes):
                await self._clock.until(self._changes[self._next].at)
