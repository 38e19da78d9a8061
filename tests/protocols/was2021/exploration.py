"""Every interleaving of one host's handoffs among three stations, up to stated bounds.

The real host and stations run. Time does not pass, and every timer may fire at any moment. A radio frame may
arrive never, once or several times, at any later moment and in any order: this covers loss, delay, reordering
and repetition. Wired links are first-in first-out. A state consists of the nodes, the packets on links and in
the air, and the remaining bounds. Equal states are explored once.

    python -m tests.protocols.was2021.exploration --sessions 4
"""

from __future__ import annotations

import argparse
import copyreg
import io
import pickle
import time
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from precede.core.effects import RADIO, WIRED, Accept, Deliver, Effects, Persist, Send
from precede.core.identity import NEIGHBOURS, MessageId
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, round_trip
from precede.protocols.registry import make_entry
from precede.protocols.was2021.packets import AppPacket, SecondResponsePacket
from tests.protocols.was2021.exploration_state import Bounds, Report, State, Still, canonical
from tests.protocols.was2021.literal import literal_entry

STATIONS = (0, 1, 2)
HOST = 3
TREE = {0: (1, 2), 1: (0,), 2: (0,)}
LINKS = tuple((one, other) for one in STATIONS for other in TREE[one])


class NodePickler(pickle.Pickler):
    """Pickles the dictionary of a node, which pickle leaves out if a base class of the node is compiled."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Node):
            return NotImplemented
        return copyreg.__newobj__, (type(value),), vars(value), None, None, set_attributes  # type: ignore[attr-defined]


def set_attributes(node: Node, attributes: dict[str, Any]) -> None:
    vars(node).update(attributes)


def pickled(node: Node) -> bytes:
    file = io.BytesIO()
    NodePickler(file).dump(node)
    return file.getvalue()


class Explorer:
    """Explores breadth first, from a host that has joined at station 0 or (`joined` false) has not joined."""

    def __init__(self, bounds: Bounds, without: str = "", joined: bool = True, most: int = 10_000_000) -> None:
        self.entry = literal_entry(without)
        self.options = {"stations": 3, "durable": bounds.crashes > 0, "down_after": "1d"}
        self.bounds = bounds
        self.joined = joined
        self.most = most
        self.pickles: list[bytes] = []
        self.node_numbers: dict[Any, int] = {}
        self.packets: list[Packet] = []
        self.packet_numbers: dict[str, int] = {}
        self.steps: dict[tuple[int, Any], tuple[int, tuple[Any, ...]]] = {}
        self.facts: dict[int, tuple[Any, ...]] = {}

    # Nodes as values --------------------------------------------------------------------------------

    def intern(self, node: Node) -> int:
        """The number of a node's state."""
        key = (type(node).__name__, canonical(node))
        number = self.node_numbers.get(key)
        if number is None:
            number = self.node_numbers[key] = len(self.pickles)
            self.pickles.append(pickled(node))
        return number

    def node(self, number: int) -> Any:
        """A fresh copy of a node's state."""
        return pickle.loads(self.pickles[number])

    def packet(self, packet: Packet) -> int:
        """The number of a packet."""
        text = repr(packet)
        number = self.packet_numbers.get(text)
        if number is None:
            number = self.packet_numbers[text] = len(self.packets)
            self.packets.append(packet)
        return number

    def step(self, number: int, event: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        """A node's next state and effects after one input; results are cached."""
        answer = self.steps.get((number, event))
        if answer is None:
            node = self.node(number)
            effects = self._call(node, event)
            kept = tuple(effect for effect in effects if isinstance(effect, (Send, Deliver, Persist, Accept)))
            answer = self.steps[number, event] = (self.intern(node), kept)
        return answer

    def _call(self, node: Any, event: tuple[Any, ...]) -> Effects:
        kind = event[0]
        if kind == "receive":
            effects = list(node.receive(self.packets[event[2]], event[1], 0, event[3]))
        elif kind == "up":
            effects = list(node.link_up(event[1], 0, event[2]))
        elif kind == "down":
            effects = list(node.link_down(event[1], 0, RADIO))
        elif kind == "expire":
            effects = []
            node._declare_down(HOST, effects)
        else:
            effects = list(node.timer(event[1], 0))
        # Queued frames are sent at once.
        for effect in effects:
            if isinstance(effect, Send) and effect.key is not None and effect.over == RADIO:
                effects += [later for later in node.sent(effect.key, 0, True) if isinstance(later, Send)]
        return effects

    # The world --------------------------------------------------------------------------------

    def first(self) -> State:
        """The initial state."""
        numbers = []
        for node in (*STATIONS, HOST):
            role = "host" if node == HOST else "station"
            numbers.append(self.intern(make_entry(self.entry, role, Context(node, (), self.options, Still(0)))))
        state = State(tuple(numbers), -1, ((),) * len(LINKS), frozenset(), (), Bounds(self.bounds.sessions), ())
        for one in STATIONS:
            for other in TREE[one]:
                state = self.act(state, one, ("up", other, WIRED))
        state = self._drain(state)
        if self.joined:
            state = self._drain(self.move(state, 0))
            for frame in sorted(state.air):
                state = self._deliver(state, frame) or state
            for frame in sorted(state.air):
                state = self._deliver(state, frame) or state
            assert self.facts_of(state)[2], "the host is connected"
        left = self.bounds if not self.joined else replace(self.bounds, sessions=self.bounds.sessions - 1)
        return replace(state, bounds=left)

    def _drain(self, state: State) -> State:
        """Let all packets on wired links arrive."""
        while True:
            busy = next((place for place, queue in enumerate(state.links) if queue), None)
            if busy is None:
                return state
            state = self._pass(state, busy)

    def act(self, state: State, node: int, event: tuple[Any, ...]) -> State:
        """Apply one input of one node and carry out its effects."""
        number, effects = self.step(state.nodes[node], event)
        nodes = (*state.nodes[:node], number, *state.nodes[node + 1 :])
        links, air, delivered = list(state.links), state.air, state.delivered
        disk = state.disk
        for effect in effects:
            if isinstance(effect, Send):
                packet = self.packet(effect.packet)
                if effect.over == WIRED:
                    place = LINKS.index((node, effect.to))
                    links[place] = (*links[place], packet)
                else:
                    target = HOST if effect.to == NEIGHBOURS else effect.to
                    air = air | {(node, target, packet)}
            elif isinstance(effect, Deliver):
                delivered = (*delivered, effect.message.id.number)
            elif isinstance(effect, Persist):
                stored = dict(disk)
                stored.pop(effect.key, None)
                if effect.value is not None:
                    stored[effect.key] = effect.value
                disk = tuple(sorted(stored.items(), key=repr))
        return State(nodes, state.cell, tuple(links), air, delivered, state.bounds, disk)

    def move(self, state: State, cell: int) -> State:
        """Move the host to another cell."""
        if state.cell >= 0:
            state = self.act(state, HOST, ("down", state.cell))
        state = replace(state, cell=cell)
        return self.act(state, HOST, ("up", cell, RADIO))

    def _pass(self, state: State, place: int) -> State:
        """The first packet of a wired link arrives."""
        one, other = LINKS[place]
        packet, *rest = state.links[place]
        links = (*state.links[:place], tuple(rest), *state.links[place + 1 :])
        return self.act(replace(state, links=links), other, ("receive", one, packet, WIRED))

    def _deliver(self, state: State, frame: tuple[int, int, int]) -> State | None:
        """A radio frame arrives; None if it cannot arrive or changes nothing."""
        sender, target, packet = frame
        if target == HOST and state.cell != sender:
            return None
        after = self.act(state, target, ("receive", sender, packet, RADIO))
        return None if after == state else after

    def successors(self, state: State) -> Iterator[State]:
        """All states that one event leads to."""
        bounds = state.bounds
        for place, queue in enumerate(state.links):
            if queue:
                yield self._pass(state, place)
        for frame in state.air:
            after = self._deliver(state, frame)
            if after is not None:
                yield after
        if bounds.sessions:
            for cell in STATIONS:
                if cell != state.cell:
                    yield self.move(replace(state, bounds=replace(bounds, sessions=bounds.sessions - 1)), cell)
        if bounds.messages:
            message = Message(MessageId(9, 0, bounds.messages), b"")
            app = self.packet(AppPacket(message))
            for station in STATIONS[1:]:
                left = replace(bounds, messages=bounds.messages - 1)
                yield self.act(replace(state, bounds=left), station, ("receive", -1, app, WIRED))
        if bounds.acks and state.cell >= 0 and self.facts_of(state)[2]:
            yield self.act(state, HOST, ("timer", "ack"))
        if self.bounds.downs:
            yield from self._expiries(state)
        if bounds.crashes and bounds.sessions:
            yield self._crash(state)

    def _expiries(self, state: State) -> Iterator[State]:
        """Down decisions: unlimited for an abandoned handoff, limited by the bounds for other records."""
        for station, record in enumerate(self.facts_of(state)[0]):
            if record is None:
                continue
            if not record[0] and station != state.cell:
                yield self.act(state, station, ("expire",))
            elif state.bounds.downs:
                left = replace(state.bounds, downs=state.bounds.downs - 1)
                yield self.act(replace(state, bounds=left), station, ("expire",))

    def _crash(self, state: State) -> State:
        """Crash and restart the host in one step, in the same cell, with what it persisted."""
        host = make_entry(self.entry, "host", Context(HOST, (), self.options, Still(0)))
        host.start(0, round_trip(dict(state.disk)))
        left = replace(state.bounds, crashes=state.bounds.crashes - 1, sessions=state.bounds.sessions - 1)
        nodes = (*state.nodes[:HOST], self.intern(host))
        state = replace(state, nodes=nodes, bounds=left)
        return self.act(state, HOST, ("up", state.cell, RADIO)) if state.cell >= 0 else state

    # The judgement --------------------------------------------------------------------------------

    def facts_of(self, state: State) -> tuple[Any, ...]:
        """Records by station as (owner, ses, attempts), the host's ses, whether it is connected."""
        host = self._fact(state.nodes[HOST])
        return (tuple(self._fact(state.nodes[station]) for station in STATIONS), host[0], host[1])

    def _fact(self, number: int) -> Any:
        if number not in self.facts:
            node = self.node(number)
            if hasattr(node, "records"):
                record = node.records.get(HOST)
                self.facts[number] = record and (record.owner, record.ses, tuple(sorted(record.attempts)))
            else:
                self.facts[number] = (node.ses, node.connected)
        return self.facts[number]

    def broken(self, state: State) -> str | None:
        """What is wrong with a state, or None.

        There is at most one owner or Rsp2, a connected host is connected to the owner, nothing is delivered
        twice.
        """
        records, ses, connected = self.facts_of(state)
        owners = [(station, record[1]) for station, record in enumerate(records) if record and record[0]]
        flying = sum(
            self._carries_token(self.packets[packet], records) for queue in state.links for packet in queue
        )
        if self.joined and len(owners) + flying > 1:
            return f"{len(owners)} owners and {flying} Rsp2 in flight"
        if connected and not self.bounds.downs and (state.cell, ses) not in owners:
            return f"connected at {state.cell} in {ses}, owners {owners}"
        if len(set(state.delivered)) < len(state.delivered):
            return f"delivered twice: {state.delivered}"
        return None

    def _carries_token(self, packet: Packet, records: Any) -> bool:
        """Is this an Rsp2 that its receiver still waits for?"""
        if not isinstance(packet, SecondResponsePacket):
            return False
        record = records[packet.to]
        return record is not None and packet.ses in record[2]

    def good(self, state: State) -> bool:
        """Is the host connected to the only station with a record, all links empty, all messages delivered?"""
        records, ses, connected = self.facts_of(state)
        home = [station for station, record in enumerate(records) if record]
        due = self.bounds.messages - state.bounds.messages if not self.bounds.downs else 0
        return (
            connected
            and home == [state.cell]
            and records[state.cell][:2] == (True, ses)
            and not any(state.links)
            and len(state.delivered) >= due
        )

    def run(self) -> Report:
        """Explore all states, then count those from which no good state can be reached."""
        began = time.process_time()
        report = Report()
        first = self.first()
        numbers = {first: 0}
        queue = [first]
        before: list[list[int]] = [[]]
        finished: list[int] = []
        for number, state in enumerate(queue):
            wrong = self.broken(state)
            if wrong is not None:
                report.broken.append(wrong)
                if len(report.broken) > 20:
                    break
            if self.good(state):
                finished.append(number)
            for after in self.successors(state):
                report.transitions += 1
                place = numbers.get(after)
                if place is None:
                    place = numbers[after] = len(queue)
                    queue.append(after)
                    before.append([])
                before[place].append(number)
            if len(queue) > self.most:
                raise RuntimeError(f"more than {self.most} states")
        report.states = len(queue)
        report.stuck = 0 if report.broken else len(queue) - _reaching(before, finished)
        report.seconds = time.process_time() - began
        return report


def _reaching(before: list[list[int]], finished: list[int]) -> int:
    """The number of states that can reach a finished one."""
    seen = bytearray(len(before))
    stack = list(finished)
    for number in stack:
        seen[number] = 1
    while stack:
        for earlier in before[stack.pop()]:
            if not seen[earlier]:
                seen[earlier] = 1
                stack.append(earlier)
    return sum(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("sessions", 4), ("messages", 0), ("crashes", 0), ("downs", 0), ("acks", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--without", default="")
    parser.add_argument("--from-scratch", action="store_true")
    arguments = parser.parse_args()
    bounds = Bounds(arguments.sessions, arguments.messages, arguments.crashes, arguments.downs, arguments.acks)
    report = Explorer(bounds, arguments.without, not arguments.from_scratch).run()
    print(bounds, report.line())
    for line in report.broken[:5]:
        print(" ", line)


if __name__ == "__main__":
    main()
