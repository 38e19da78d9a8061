"""The nodes of one process in an emulation: they start, stop, broadcast and change links as a plan says.

Any number of nodes share a process and an event loop; all processes of an emulation have the same epoch and
speed. Both ends of a link open and close it by their own schedule, at the same instant of the same clock. A
frame may arrive before the receiver's timer has opened the link, so a node first applies all due changes.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from precede.core.effects import RADIO
from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant
from precede.core.plan import LinkChange, Plan, PlannedBroadcast, Stay
from precede.runtime.group import Group
from precede.runtime.transports.addresses import Address

_RETRY: int = 20 * MILLISECOND
_PATIENCE: int = 60 * SECOND


class Clock(Struct, frozen=True):
    """The time in the scenario: it starts at `epoch` (wall clock) and runs `speed` times as fast."""

    epoch: Instant
    speed: float = 1.0

    def now(self) -> Instant:
        return int((time.time_ns() // 1000 - self.epoch) * self.speed)

    async def until(self, at: Instant) -> None:
        while (left := at - self.now()) > 0:
            await asyncio.sleep(left / SECOND / self.speed)


class Tally(Struct):
    """Counts of one process. `late_us` is the largest delay of a broadcast or a link change behind the plan."""

    up: int = 0
    broadcasts: int = 0
    refused: int = 0
    delivered: int = 0
    late_us: int = 0


class Emulated:
    """Runs the nodes of one process through a plan."""

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[NodeId],
        open_group: Callable[[NodeId], Group],
        places: Mapping[NodeId, Address],
        clock: Clock,
        restarted: bool = False,
    ) -> None:
        """Prepare the nodes; if `restarted` (after a kill), past messages are not sent again."""
        self._since = clock.now() if restarted else 0
        self.tally = Tally()
        self.groups: dict[NodeId, Group] = {}
        self._plan = plan
        self._open_group = open_group
        self._places = places
        self._clock = clock
        self._nodes = {node: _Script(plan, node) for node in nodes}

    async def run(self, until: Instant) -> None:
        """Run every node up to an instant, then stop all in good order."""
        tasks = [asyncio.create_task(self._run_stays(node, until)) for node in self._nodes]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_stays(self, node: NodeId, until: Instant) -> None:
        """Run a node's stays one after the other, without those that end before this process started."""
        for stay in self._nodes[node].stays:
            end = until if stay.end is None else min(stay.end, until)
            if end <= self._clock.now():
                continue
            await self._clock.until(stay.start)
            await self._run_stay(node, stay, end)

    async def _run_stay(self, node: NodeId, stay: Stay, end: Instant) -> None:
        """Start a node, let it work until the end of a stay, and end it as the plan says."""
        group, script = self._open_group(node), self._nodes[node]
        links = _LinkSchedule(group, script.links, node, self._places, self._clock, self._was_late)
        group.links.on_frame = links.apply_due
        crashed = False
        async with group:
            self.groups[node] = group
            self.tally.up += 1
            tasks = [
                asyncio.create_task(work)
                for work in (links.run(), self._broadcast_all(node, stay.start, stay.end), self._take(group))
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

    async def _broadcast_all(self, node: NodeId, start: Instant, end: Instant | None) -> None:
        """Broadcast a node's messages at their instants; retry those that are refused for a while."""
        group, script = self.groups[node], self._nodes[node]
        since = max(self._since, start)
        for message in script.messages:
            if message.at < since or (end is not None and message.at > end):
                continue
            await self._clock.until(message.at)
            while not self._try_broadcast(group, message):
                await asyncio.sleep(_RETRY / SECOND / self._clock.speed)
            await asyncio.sleep(0)

    def _try_broadcast(self, group: Group, message: PlannedBroadcast) -> bool:
        """Broadcast a message, or give up after too long. False: it was refused, and should be tried again."""
        late = self._clock.now() - message.at
        self._was_late(late)
        try:
            group.driver.broadcast(bytes(message.size), message.to, message.lifetime)
        except Refused:
            if late < _PATIENCE:
                return False
            self.tally.refused += 1
            return True
        self.tally.broadcasts += 1
        return True

    def _was_late(self, late: Duration) -> None:
        self.tally.late_us = max(self.tally.late_us, late)

    async def _take(self, group: Group) -> None:
        async for _ in group:
            self.tally.delivered += 1


class _Script:
    """One node's part of a plan: its stays, its messages and its radio links."""

    def __init__(self, plan: Plan, node: NodeId) -> None:
        self.stays = [stay for stay in plan.stays if stay.node == node]
        self.messages = [message for message in plan.broadcasts if message.node == node]
        self.links = [link for link in plan.links if link.over == RADIO and node in (link.a, link.b)]


class _LinkSchedule:
    """Opens and closes one node's links at their instants."""

    def __init__(
        self,
        group: Group,
        changes: Sequence[LinkChange],
        node: NodeId,
        places: Mapping[NodeId, Address],
        clock: Clock,
        was_late: Callable[[Duration], None],
    ) -> None:
        """Prepare a node's link changes. `was_late` is called with the delay of each change that is due."""
        self._since = clock.now()
        self._report_late = was_late
        self._group = group
        self._changes = changes
        self._node = node
        self._places = places
        self._clock = clock
        self._next = 0

    def apply_due(self) -> None:
        """Apply all changes that are due; of several changes of one link only the last one."""
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
            self._report_late(late)

    async def run(self) -> None:
        """Apply all changes, each at its instant."""
        while self._next < len(self._changes):
            self.apply_due()
            if self._next < len(self._changes):
                await self._clock.until(self._changes[self._next].at)
