"""Frames: what a page is sent after each step. The same frames, recorded, are what the static page replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from precede.core.identity import MessageId
from precede.play.judge import Judge
from precede.play.side import Side
from precede.witness.history import name_message
from precede.witness.verdict import Violation

MOST_EVENTS: Final = 2_000
"""The most events of one side in a frame. A page that runs fast gets no more: packets are left out first."""
MOST_WAITING: Final = 200
_MOST_STORIES: Final = 20
_PACKETS: Final = ("sent", "packet_received")

Event = list[Any]
"""An event for a page: instant, kind, node, message, peer, messages in a packet, reason or kind of packet."""


class SideFrames:
    """Makes the frames of one side: its new events, and its state now."""

    def __init__(self, side: Side, judge: Judge) -> None:
        self.side, self.judge = side, judge
        self.counts = dict.fromkeys(("broadcast", "received", "delivered", "discarded", "sent"), 0)
        self.most_waiting = 0

    def frame(self, in_range: Sequence[tuple[int, int]] | None = None) -> dict[str, Any]:
        """Return what happened since the last frame, and how things are now.

        `in_range` are the pairs that hear each other, in a network that reports no links.
        """
        side, world = self.side, self.side.world
        rows = side.new_rows()
        violations = self.judge.add(rows)
        for row in rows:
            if row["kind"] in self.counts:
                self.counts[row["kind"]] += 1
        shown, left_out = self._events(rows)
        waiting = side.waiting()
        self.most_waiting = max(self.most_waiting, len(waiting))
        return {
            "events": shown,
            "left_out": left_out,
            "links": self._links(in_range),
            "cuts": [list(pair) for pair in world.cuts],
            "down": side.down(),
            "waiting": [self._waiting(node, item) for node, item in waiting[:MOST_WAITING]],
            "waiting_count": len(waiting),
            "texts": self._texts(rows),
            "violations": self.judge.violations,
            "new_violations": [self._violation(item) for item in violations[:_MOST_STORIES]],
            "counts": dict(self.counts),
        }

    def _links(self, in_range: Sequence[tuple[int, int]] | None) -> list[list[int]] | None:
        """Return the links that are up and not cut; None if every node can reach every other one."""
        world = self.side.world
        links = [(a, b) for a, b, _ in world.links] if world.reports_links else in_range
        return None if links is None else [pair for pair in _pairs(links) if tuple(pair) not in world.cuts]

    def _events(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Event], int]:
        kept = rows
        if len(kept) > MOST_EVENTS:
            kept = [row for row in rows if row["kind"] not in _PACKETS][-MOST_EVENTS:]
        return [self._event(row) for row in kept], len(rows) - len(kept)

    def _event(self, row: Mapping[str, Any]) -> Event:
        ids = self.side.ids
        message = None
        if row["message_number"] is not None:
            source = row["message_source"]
            message = name_message(source, row["message_incarnation"], row["message_number"])
        peer = ids.get(row["peer"]) if row["peer"] is not None else None
        detail = row["reason"] or row["packet_kind"]
        return [row["at_us"], row["kind"], ids[row["node"]], message, peer, row["messages_in_packet"], detail]

    def _name(self, id: MessageId) -> str:
        return name_message(self.side.names[id.source], id.incarnation, id.number)

    def _waiting(self, node: int, item: Any) -> list[Any]:
        return [
            node,
            self._name(item.message),
            [self._name(id) for id in item.waits_for],
            item.since,
            item.until,
        ]

    def _texts(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return what was said in the messages that rows broadcast, by the names of the messages."""
        texts = {}
        for row in rows:
            if row["kind"] == "broadcast":
                id = MessageId(
                    self.side.ids[row["message_source"]], row["message_incarnation"], row["message_number"]
                )
                if id in self.side.world.texts:
                    texts[self._name(id)] = self.side.world.texts[id]
        return texts

    def _violation(self, item: Violation) -> dict[str, Any]:
        return {
            "node": self.side.ids[item.node],
            "message": item.message,
            "other": item.other,
            "kind": item.kind,
            "story": item.story,
        }


def _pairs(links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return links without direction, each once."""
    return [list(pair) for pair in dict.fromkeys((min(a, b), max(a, b)) for a, b in links)]
