"""Explores all schedules of a small group in total order that deviate from the calm one a few times (DRIFT).

A breadth-first search over all schedules does not reach the end of a join: that takes a hundred steps. So this
one is bounded by *deviations* (delay-bounded scheduling). The calm schedule delivers packets in the order in
which they were sent, and fires the earliest timer when none is left. At each of its steps every deviation is
tried: a packet is lost, comes twice, or last of all; a timer fires early; the node whose turn it is crashes
before any step of its effects, or between two steps of its recovery, and restarts; a node hears nobody and is
heard by nobody for `CUT_FOR`. After each deviation the calm schedule goes on, and with deviations left each of
its steps is tried again. The calm end of each schedule must heal (`total_order`), and the invariants are asked
in every state.

A node that is down for a while does the same as one that restarts at once and hears nobody, so a crash always
restarts at once. Equal states are visited once. There is no other reduction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from precede.core.effects import Effects, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import SECOND, Duration, Instant
from tests.protocols.explored.healing import Healing
from tests.protocols.explored.total_order import TotalOrderExplorer
from tests.protocols.explored.worlds import Broken, State

CUT_FOR: Duration = 20 * SECOND
ALL = ("lose", "repeat", "delay", "timer", "crash", "cut")


class Schedule(NamedTuple):
    """A state of the world, in which `air` has the packets on their way in the order of sending.

    Node `deaf` is cut off until a clock reads `deaf_until`. `left`: how many deviations may still follow.
    """

    state: State
    left: int
    deaf: NodeId = -1
    deaf_until: Instant = 0


class DeviationExplorer(TotalOrderExplorer):
    """All schedules with at most so many deviations of these kinds. `count` has the schedules that ended."""

    def __init__(self, *arguments: Any, kinds_tried: tuple[str, ...] = ALL, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._tried = kinds_tried
        self.count = 0
        self._seen: dict[Schedule, None] = {}

    # The calm schedule ------------------------------------------------------------------------------

    def _carry_out(self, state: State, id: NodeId, number: int, effects: Effects) -> State:
        sent: list[tuple[NodeId, NodeId, int]] = []
        for effect in effects:
            if type(effect) is Send:
                to = self._everybody if effect.to == NEIGHBOURS else (effect.to,)
                sent += [(id, peer, self._packet(effect.packet)) for peer in to if peer != id]
        others = [effect for effect in effects if type(effect) is not Send]
        air: Any = (*state.air, *sent)
        return super()._carry_out(state._replace(air=frozenset()), id, number, others)._replace(air=air)

    def _calm(self, schedule: Schedule) -> tuple[Schedule, NodeId, tuple[Any, ...]]:
        """The next input of the calm schedule, and the schedule just before it."""
        state = schedule.state
        air: Any = state.air
        while air and schedule.deaf in air[0][:2]:
            air = air[1:]
        if air:
            sender, to, packet = air[0]
            event = ("receive", state.members[to].clock, sender, packet)
            return schedule._replace(state=state._replace(air=air[1:])), to, event
        for id, left in enumerate(state.broadcasts):
            if left and self._facts[state.members[id].node].stream is not None:
                broadcasts = (*state.broadcasts[:id], left - 1, *state.broadcasts[id + 1 :])
                before = state._replace(broadcasts=broadcasts, air=air)
                return schedule._replace(state=before), id, ("broadcast", state.members[id].clock)
        _, id, _, timer = min(
            (timer.at, id, repr(timer.key), timer)
            for id, member in enumerate(state.members)
            for timer in member.timers
        )
        before, id, event = self._due(state._replace(air=air), id, timer)
        return self._heard_again(schedule._replace(state=before)), id, event

    def _heard_again(self, schedule: Schedule) -> Schedule:
        now = max(member.clock for member in schedule.state.members)
        return schedule._replace(deaf=-1, deaf_until=0) if now >= schedule.deaf_until else schedule

    def _is_over(self, schedule: Schedule) -> bool:
        """Is everybody a source, and every message delivered where it is due?"""
        state = schedule.state
        accepted = [message for message, _ in state.pasts]
        return (
            schedule.deaf < 0
            and not any(state.broadcasts)
            and all(facts.stream is not None for facts in self._facts_in(state))
            and all(message in state.members[id].delivered for id in self._members for message in accepted)
        )

    # The search -----------------------------------------------------------------------------------

    def explore_deviations(self, most: int, every: int = 1) -> int:
        """Try all schedules with at most so many deviations; of the first ones only each `every`th.

        Returns the number of different states in them.
        """
        first = Schedule(self._first(), most)
        for number, schedule in enumerate(self._deviating(first)):
            if number % every == 0:
                self._follow(schedule)
        return len(self._seen)

    def explore_after_cut(self, node: NodeId, most: int) -> int:
        """Cut a node off just before it broadcasts, then try all schedules with at most so many deviations.

        Node 0 broadcasts too. Its last message waits for the clock of the node that is cut off, so a view
        removes that node, which learns of it later and applies again. Few pairs of deviations lead there.
        """
        schedule = Schedule(self._first(), most)
        while True:
            before, id, event = self._calm(schedule)
            if (id, event[0]) == (node, "broadcast"):
                break
            schedule = before._replace(state=self._act(before.state, id, event))
        state = schedule.state
        now = max(member.clock for member in state.members)
        state = state._replace(broadcasts=(state.broadcasts[0] + 3, *state.broadcasts[1:]))
        for deviating in self._deviating(Schedule(state, most, node, now + CUT_FOR)):
            self._follow(deviating)
        return len(self._seen)

    def _follow(self, schedule: Schedule) -> None:
        if schedule in self._seen:
            return
        self._seen[schedule] = None
        self._check(schedule.state)
        if not schedule.left:
            self.count += 1
            self._check_end(schedule)
            return
        for later in self._deviating(schedule):
            self._follow(later)

    def _deviating(self, schedule: Schedule) -> Iterator[Schedule]:
        """Follow the calm schedule to its end; at each step, yield every schedule that deviates there."""
        for _ in range(1_000):
            self._check(schedule.state)
            if self._is_over(schedule):
                self.count += 1
                self._check_end(schedule)
                return
            before, id, event = self._calm(schedule)
            for after in self._deviations(schedule, before, id, event):
                yield after._replace(left=schedule.left - 1)
            schedule = before._replace(state=self._act(before.state, id, event))
            if schedule in self._seen:
                return
            self._seen[schedule] = None
        raise Broken("healing: the calm schedule does not end")

    def _deviations(
        self, schedule: Schedule, before: Schedule, id: NodeId, event: tuple[Any, ...]
    ) -> Iterator[Schedule]:
        state = before.state
        air: Any = state.air
        if event[0] == "receive":
            frame = (event[2], id, event[3])
            if "lose" in self._tried:
                yield before
            if "repeat" in self._tried:
                again = state._replace(air=(*air, frame))  # type: ignore[arg-type]
                yield before._replace(state=self._act(again, id, event))
            if "delay" in self._tried and air:
                yield before._replace(state=state._replace(air=(*air, frame)))  # type: ignore[arg-type]
        if "timer" in self._tried:
            for early, owner, due in self._early_timers(schedule.state):
                yield schedule._replace(state=self._act(early, owner, due))
        if "crash" in self._tried:
            effects = self._answer(state.members[id].node, event)[1]
            for torn in self._crashes(state._replace(crashes=2), id, effects):
                yield before._replace(state=torn._replace(crashes=0))
        if "cut" in self._tried and schedule.deaf < 0:
            now = max(member.clock for member in schedule.state.members)
            for deaf in self._everybody:
                yield schedule._replace(deaf=deaf, deaf_until=now + CUT_FOR)

    def _early_timers(self, state: State) -> Iterator[tuple[State, NodeId, tuple[Any, ...]]]:
        for id, member in enumerate(state.members):
            for timer in member.timers:
                yield self._due(state, id, timer)

    def _check_end(self, schedule: Schedule) -> None:
        """The calm schedule goes on: first with the node that is cut off, then everybody hears everybody."""
        state = schedule.state

        def start(healing: Healing) -> None:
            air: Any = state.air
            for frame in air:
                healing.put_on_its_way(*frame)
            if schedule.deaf >= 0:
                healing.deaf = schedule.deaf
                healing.run(CUT_FOR)
                healing.deaf = None

        self._check_healed(state, start)
