"""The topics of one member: opens them, and connects their lanes to the links of the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from precede.core.effects import Key, Medium
from precede.core.errors import BadInput, Refused, StoreFailed
from precede.core.identity import NodeId
from precede.core.settings import did_you_mean
from precede.runtime.deliveries import MemberState
from precede.runtime.driver import Driver
from precede.runtime.evidence.proofs import Equivocation
from precede.runtime.history.housekeeping import Housekeeping
from precede.runtime.links.neighbours import Links
from precede.runtime.membership import Membership
from precede.runtime.names import MemberNames
from precede.runtime.notices import Notices
from precede.runtime.rosters import SignedRoster
from precede.runtime.settings import MemberSettings, read_lifetime
from precede.runtime.topics.lane import Lane
from precede.runtime.topics.lane_links import LaneLinks, split_key
from precede.runtime.topics.lane_plan import FIRST_LANE, LANES
from precede.runtime.topics.topic import NewSending, Topic
from precede.runtime.topics.topic_names import encoded_name

_ORDERS = {number: order for order, number in LANES.items()}


class Topics:
    """The topics that the application has opened, and the lanes of all orders in use.

    `on_missed` is called if a topic drops a message. `driver` is
    that of the group itself, `housekeeping` that of the member, to which each lane adds its own.
    """

    def __init__(
        self,
        group: str,
        state: MemberState,
        names: MemberNames,
        settings: MemberSettings,
        notices: Notices,
        driver: Driver,
        links: Sequence[tuple[Medium, Links]],
        housekeeping: list[Housekeeping],
        new_sending: NewSending,
        on_missed: Callable[[], None],
    ) -> None:
        self._group = group
        self._state = state
        self._names = names
        self._settings = settings
        self._notices = notices
        self._driver = driver
        self._links = links
        self._housekeeping = housekeeping
        self._new_sending = new_sending
        self._on_missed = on_missed
        self._lanes: dict[int, Lane] = {}
        self._open: dict[str, Topic] = {}
        self._foreign: set[int] = set()

    # -- for the application -----------------------------------------------------------------------------

    def open(self, name: str, order: str, lifetime: str | timedelta | None) -> Topic:
        """Open a topic, or return it if it is open. Raise BadInput if its order or lifetime does not fit."""
        encoded_name(name)
        duration = read_lifetime(lifetime)
        if order not in LANES:
            near = did_you_mean(order, LANES)
            raise BadInput(f"topic {name!r}: order {order!r} is none of {', '.join(LANES)}{near}")
        if order == "delta" and duration is None:
            raise BadInput(f"topic {name!r}: order 'delta' needs a lifetime")
        if order not in ("delta", "none") and duration is not None:
            raise BadInput(f"topic {name!r}: order {order!r} has no lifetime ('delta' is causal with one)")
        known = self._open.get(name)
        if known is not None and not known.is_closed:
            if known.order != order:
                raise BadInput(f"topic {name!r}: is open with order {known.order!r}")
            return known
        if self._state.phase == "closed":
            self._state.check_open()
        lane = self._lane(LANES[order])
        topic = Topic(
            *(name, duration, lane, self._names, self._state),
            *(self._settings.backlog, self._new_sending, self._on_missed),
        )
        self._open[name] = topic
        lane.open(name, topic)
        return topic

    def lanes(self) -> list[Lane]:
        return list(self._lanes.values())

    def dropped(self) -> Counter[str]:
        """Count what the lanes dropped, by reason."""
        return sum((lane.driver.dropped for lane in self._lanes.values()), Counter())

    def evidence(self) -> list[Equivocation]:
        """Return the evidence against members that signed contradicting messages in topics."""
        return [each for lane in self._lanes.values() for each in lane.membership.evidence()]

    def status(self) -> dict[str, Any]:
        """Return of each open topic, by name, its order and how many messages wait, and are not taken."""
        return {
            name: {"order": topic.order, "waiting": len(topic.waiting()), "untaken": topic.untaken}
            for name, topic in self._open.items()
            if not topic.is_closed
        }

    # -- lanes -------------------------------------------------------------------------------------------

    def _lane(self, number: int) -> Lane:
        """Return a lane. Make and start it if there is none yet: nobody has spoken in it so far."""
        if number not in self._lanes:
            lane = self._lanes[number] = self._new_lane(_ORDERS[number])
            if self._state.phase == "open":
                self._start(lane)
        return self._lanes[number]

    def _new_lane(self, order: str) -> Lane:
        if self._settings.plan_lane is None:
            raise Refused("topics: this member was not made by precede.join")
        plan = self._settings.plan_lane(order)
        settings = msgspec.structs.replace(
            self._settings,
            **{field: getattr(plan, field) for field in ("protocol", "renewable", "after_copy")},
            store=_beside(self._settings.store, order),
            log=_beside(self._settings.log, order),
            wires=0,
            transfers=None,
        )
        purpose = f"{self._group}\0topics {order}"
        membership = Membership(purpose, self._state.name, self._names, settings, self._notices)
        segments = membership.new_segments(f"{self._group} topics {order}")
        driver = membership.new_driver(plan.make_node, plan.codec)
        driver.outside = {over: LaneLinks(links, LANES[order]) for over, links in self._links}
        driver.hold = self._driver.hold
        driver.on_failure = self._fail
        self._housekeeping.append(Housekeeping(driver, segments, settings, self._notices))
        lane = Lane(order, membership, driver, lambda source, name: self._tell(lane, source, name))
        assert driver.inspection is not None
        driver.inspection.on_rollback = lambda: self._rolled_back(lane)
        return lane

    def _fail(self, error: StoreFailed) -> None:
        """Stop the whole member if the store of a lane fails."""
        self._driver.on_failure(error)

    def _start(self, lane: Lane) -> None:
        lane.start([(peer, over) for over, links in self._links for peer in links.neighbours()])

    def _tell(self, lane: Lane, source: NodeId, name: str) -> None:
        """Warn if others use a topic with another order than this member. Their messages are not mixed in."""
        topic = self._open.get(name)
        if topic is not None and not topic.is_closed and topic.order != lane.order:
            peer = self._names.name_of(source)
            text = f"{peer} uses the topic {name!r} with order {lane.order!r}, this member with {topic.order!r}"
            self._notices.give("other_topic_order", f"{text}: open it alike in the whole group", peer, name)

    def _rolled_back(self, lane: Lane) -> None:
        if not lane.rolled_back:
            lane.rolled_back = lane.membership.tell_rollback(lane.driver.store)

    # -- what the group reports --------------------------------------------------------------------------

    def start(self) -> None:
        """Start the lanes of topics that are open, and those that have a store from an earlier start."""
        for topic in self._open.values():
            topic.follow(self._state)
        for number, order in _ORDERS.items():
            path = _beside(self._settings.store, order)
            if number not in self._lanes and path is not None and path.exists():
                self._lanes[number] = self._new_lane(order)
        for lane in self._lanes.values():
            self._start(lane)

    def packet(self, data: bytes, sender: NodeId, over: Medium, to_all: bool) -> None:
        """Handle a packet that begins with the number of a lane. The first packet of a lane starts it."""
        number = data[0] - FIRST_LANE[0]
        if number not in self._lanes and not self._try_to_start(number):
            self._driver.dropped["no_topic"] += 1
            return
        self._lanes[number].driver.packet(data[1:], sender, over, to_all)

    def _try_to_start(self, number: int) -> bool:
        """Take part in a lane that others use, if this member can."""
        if number not in _ORDERS or number in self._foreign:
            return False
        try:
            self._lane(number)
        except (BadInput, Refused):
            self._foreign.add(number)
            return False
        return True

    def link(self, peer: NodeId, over: Medium, up: bool) -> None:
        for lane in self._lanes.values():
            (lane.driver.link_up if up else lane.driver.link_down)(peer, over)

    def left(self, key: Key, ok: bool) -> None:
        """Pass on the report that a keyed packet was transmitted or dropped."""
        split = split_key(key)
        if split is None:
            self._driver.left(key, ok)
        elif split[0] in self._lanes:
            self._lanes[split[0]].driver.left(split[1], ok)

    def follow_roster(self, roster: SignedRoster) -> None:
        """Accept the signatures of a newer roster only, in the lanes that run and in later ones."""
        self._settings = msgspec.structs.replace(
            self._settings, roster=roster.members, epoch=roster.epoch, retired=roster.retired
        )
        for lane in self._lanes.values():
            lane.membership.follow(roster, lane.driver.store)

    def keep_in_hand(self) -> None:
        for topic in self._open.values():
            topic.keep_in_hand()

    def end(self) -> None:
        """End the loops of all topics: the member has closed or failed."""
        for topic in self._open.values():
            topic.follow(self._state)
            topic.end()

    def stop(self) -> None:
        """Stop all lanes in good order."""
        for topic in self._open.values():
            topic.acknowledge()
        for lane in self._lanes.values():
            lane.stop()

    def close_stores(self) -> None:
        for lane in self._lanes.values():
            lane.close_store()

    def crash(self) -> None:
        for lane in self._lanes.values():
            lane.crash()


def _beside(path: Path | None, order: str) -> Path | None:
    """Return the path of a lane's store or log, beside that of the group."""
    return None if path is None else path.with_name(f"{path.name}-topics-{order}")
