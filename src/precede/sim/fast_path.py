"""The fast path of the simulator: the effects of plain nodes, written for speed.

For a plain node (`HostedNode.plain`) it does what the shared dispatch does with the methods of `NodeEffects`,
in half of the instructions. It looks at the most frequent effect first. It writes a message that is received
and delivered at once as one pair of rows. `plain_writer` writes the other rows, and lets packets take off that
can only take time (`Flight`). Every other effect, and every other node, goes through the shared dispatch.
"""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from precede.core.effects import Arrive, Deliver, Discard, Effects, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.eventlog.recorder import Recorder
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.node_effects import NodeEffects
from precede.sim.plain_writer import PlainWriter, QueuedPackets


@mypyc_attr(allow_interpreted_subclasses=True)
class FastPath(NodeEffects):
    """Carries out the effects of plain nodes quickly, and those of all other nodes as `NodeEffects` does."""

    def __init__(self, nodes: list[HostedNode], network: Network, recorder: Recorder) -> None:
        super().__init__(nodes, network, recorder)
        self.packet_codes = recorder.packet_kinds
        self.writer = PlainWriter(recorder, network, QueuedPackets(self.queue), len(nodes), self.apply)
        self._reason = ""  # the last reason of a discard, and its code
        self._reason_code = 0

    def carry_out(self, node: NodeId, effects: Effects, now: Instant) -> None:
        hosted = self.nodes[node]
        if hosted.plain:
            self.carry_out_plain(hosted, effects, now)
        else:
            super().carry_out(node, effects, now)

    def carry_out_plain(self, hosted: HostedNode, effects: Effects, now: Instant) -> None:
        """Carries out the effects of a plain node; an `Arrive` is written with the next effect."""
        rows, writer, process = self.rows, self.writer, hosted.process
        arrived: Arrive | None = None
        written = 0
        listed: list[Any] = effects if isinstance(effects, list) else list(effects)
        effect: Any
        for place, effect in enumerate(listed):
            if place < written:
                continue
            if isinstance(effect, Deliver):
                if arrived is None:
                    written = self._end_of_deliveries(listed, place)
                    if written > place + 1:
                        rows.all_delivered(process, now, listed[place:written])
                        continue
                    rows.delivered(process, now, effect)
                elif arrived.only is effect.message:
                    rows.received_and_delivered(process, now, effect)
                    arrived = None
                else:
                    rows.received(process, now, arrived)
                    rows.delivered(process, now, effect)
                    arrived = None
                if self.on_deliver is not None:
                    self.on_deliver(hosted.id, effect.message)
                continue
            if arrived is not None:
                rows.received(process, now, arrived)
                arrived = None
            if isinstance(effect, Send):
                if effect.key is None and hosted.flight is not None:
                    writer.begin(hosted, now)
                    writer.send(effect.packet, effect.to, effect.over)
                else:
                    self.network.send(hosted.id, effect)
            elif isinstance(effect, Arrive):
                if effect.only is None and self._all_delivered(effect, listed, place):
                    written = place + 1 + len(effect.messages)
                    rows.received_then_delivered(process, now, listed[place + 1 : written])
                else:
                    arrived = effect
            elif isinstance(effect, Discard):
                if effect.reason != self._reason:
                    self._reason, self._reason_code = effect.reason, self.recorder.reason_code(effect.reason)
                rows.discarded(process, now, effect, self._reason_code)
            else:
                self.apply(hosted.id, effect, now)
        if arrived is not None:
            rows.received(process, now, arrived)

    def _end_of_deliveries(self, effects: list[Any], place: int) -> int:
        """Return where deliveries that begin at `place` end; `place` itself if something listens to each."""
        if self.on_deliver is None:
            while place < len(effects) and isinstance(effects[place], Deliver):
                place += 1
        return place

    def _all_delivered(self, arrive: Arrive, effects: list[Any], place: int) -> bool:
        """True if the effects behind `place` deliver the messages in order, and nothing listens to that."""
        if len(effects) <= place + len(arrive.messages) or self.on_deliver is not None:
            return False
        if arrive.deliveries is not None:
            for deliver in arrive.deliveries:
                place += 1
                if effects[place] is not deliver:
                    return False
            return True
        effect: Any
        for message in arrive.messages:
            place += 1
            effect = effects[place]
            if not isinstance(effect, Deliver) or effect.message is not message:
                return False
        return True
