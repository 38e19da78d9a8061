"""Puts programs through a plan: starts and kills them, tells them their neighbours, and carries their messages.

One loop in one thread, with pipes that never block. The plan is in time of the scenario, which runs `speed`
times as fast as that of the machine; programs have the machine's time. A message is carried if the link is up
when it is sent and still up when it lands. The same seed gives the same plan and the same draws of loss and
delay for the n-th message of a link; when programs send is their own business.

A program that misbehaves, ends by itself or does not answer is killed, with one line of cause; the others go
on.
"""

import selectors
import time
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any, Final

from precede.core.identity import NodeId
from precede.core.instants import SECOND, Instant
from precede.core.plan import Plan
from precede.runtime.programs.guard import Guard
from precede.runtime.programs.observed import Broadcast, number_of, place_the_rest
from precede.runtime.programs.program import Message, Misbehaved, Program, printable
from precede.runtime.programs.state import Counts, Failure, Node, Settings

CLIENT: Final = "c0"
"""The name of the client that asks programs to broadcast, in Maelstrom's format."""
MOST_IN_FLIGHT_BYTES: Final = 1 << 25
"""The most bytes that one node has in flight over its links."""
READS: Final = 20
"""How often each program is asked what it has, when only `read` shows it."""
_LOOK: Final = 0.1
_GRACE: Final = 1.0
_DOWN, _END, _START, _UP, _SAY, _READ, _LAND = range(7)
"""What happens at one instant, in this order, as in the simulator."""


class Carrier:
    """Runs a plan with programs. `run` returns when it is over; no process outlives it."""

    def __init__(self, plan: Plan, folder: Path, settings: Settings) -> None:
        self.counts = Counts()
        self.failures: list[Failure] = []
        self._plan, self._folder, self._settings = plan, folder, settings
        self.nodes = [Node(place, name, settings.durable) for place, name in enumerate(plan.names)]
        self._by_id = {node.id: node for node in self.nodes}
        self._broadcasts: dict[int, Broadcast] = {}
        self._links: dict[tuple[NodeId, NodeId], int] = {}
        self._changed: dict[NodeId, None] = {}
        self._queue: list[tuple[Instant, int, int, tuple[Any, ...]]] = []
        self._numbers, self._message_ids = count(), count(1)
        self._selector = selectors.DefaultSelector()
        self._epoch: float | None = None

    def run(self) -> None:
        """Run the plan from start to end, and write the event log."""
        guard = self._guard = Guard()
        try:
            self._schedule()
            self._start_first()
            self._epoch = time.monotonic()
            while self.now() < self._plan.end or self._someone_owes():
                self._turn()
            if self._settings.watch == "read":
                self._read_all()
        finally:
            self._end_all()
            guard.close()
            self._selector.close()
        place_the_rest(self._broadcasts.values())
        for node in self.nodes:
            self.counts.deliveries += node.observed.deliveries
            node.observed.write(self._folder / "log", self._plan.run_id)

    def now(self) -> Instant:
        """Return the time of the scenario; 0 until the first programs are ready."""
        if self._epoch is None:
            return 0
        return int((time.monotonic() - self._epoch) * self._settings.speed * SECOND)

    def _at(self, at: Instant, phase: int, *what: Any) -> None:
        heappush(self._queue, (at, phase, next(self._numbers), what))

    def _schedule(self) -> None:
        plan = self._plan
        for stay in plan.stays:
            self._at(stay.start, _START, stay.node)
            if stay.end is not None:
                self._at(stay.end, _END, stay.node, stay.ends == "crashed")
        for link in plan.links:
            self._at(link.at, _UP if link.up else _DOWN, link.a, link.b)
        for number, message in enumerate(plan.broadcasts):
            self._at(message.at, _SAY, message.node, number)
        if self._settings.watch == "read":
            for turn in range(1, READS):
                self._at(plan.end * turn // READS, _READ)

    def _start_first(self) -> None:
        """Start the programs that are there at the beginning. Time begins when they are ready."""
        begun = time.monotonic()
        self._happen(0, upto=_START)
        while any(node.program is not None and not node.ready for node in self.nodes):
            self._turn()
            if time.monotonic() - begun > 10 * self._settings.patience:
                break

    def _someone_owes(self) -> bool:
        """True while a program has not answered a request, or has a broadcast to do. Patience limits it."""
        running = (node for node in self.nodes if node.program is not None)
        return any(node.todo or any(_is_awaited(asked[0]) for asked in node.asked.values()) for node in running)

    def _turn(self) -> None:
        """Do what is due, then wait for programs, at most until something is due."""
        if self._epoch is not None:
            self._happen(self.now(), upto=_LAND)
        for place in list(self._changed):
            self._tell_neighbours(self.nodes[place])
        self._changed.clear()
        pause = _LOOK
        if self._queue and self._epoch is not None:
            pause = (self._queue[0][0] - self.now()) / SECOND / self._settings.speed
        for key, _ in self._selector.select(min(_LOOK, max(0.0, pause))):
            node, program, what = key.data
            if node.program is program:
                self._serve(node, program, what)
        self._end_leaving()
        now = time.monotonic()
        for node in self.nodes:
            if node.program is not None:
                self._check(node, node.program, now)

    def _happen(self, now: Instant, upto: int) -> None:
        while self._queue and self._queue[0][:2] <= (now, upto):
            at, phase, _, what = heappop(self._queue)
            self.counts.late_us = max(self.counts.late_us, now - at)
            match phase:
                case 0 | 3:
                    self._change_link(what[0], what[1], phase == _UP)
                case 1:
                    self._leave(self.nodes[what[0]], what[1])
                case 2:
                    self._start(self.nodes[what[0]])
                case 4:
                    self.nodes[what[0]].todo.append(what[1])
                    self._say_next(self.nodes[what[0]])
                case 5:
                    for node in self.nodes:
                        self._ask(node, "read")
                case 6:
                    self._land(*what)

    def _start(self, node: Node) -> None:
        if node.failed or node.program is not None:
            return
        if node.leaving is not None:
            node.leaving[0].kill()
            node.leaving = None
        folder = self._folder / "nodes" / node.name
        folder.mkdir(parents=True, exist_ok=True)
        self.counts.restarted += node.observed.incarnation >= 0
        node.program = program = Program(self._settings.command, folder, self._guard)
        node.observed.started(self.now())
        node.has = set()
        for descriptor, what in ((program.stdout, "stdout"), (program.stderr, "stderr")):
            self._selector.register(descriptor, selectors.EVENT_READ, (node, program, what))
        ids = [other.id for other in self.nodes]
        self._ask(node, "init", node_id=node.id, node_ids=ids)

    def _leave(self, node: Node, crashed: bool) -> None:
        if node.program is None:
            return
        self.counts.killed += crashed
        self._stop(node, crashed)

    def _stop(self, node: Node, crashed: bool) -> None:
        """End a program: at once, or after it has read that its input is closed."""
        program = node.program
        if program is None:
            return
        node.program, node.ready = None, False
        node.asked.clear()
        node.in_flight = 0
        self.counts.unsaid += len(node.todo)
        node.todo.clear()
        for descriptor in (program.stdin, program.stdout, program.stderr):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        node.observed.ended(self.now(), crashed)
        if crashed:
            program.kill()
        else:
            program.hang_up()
            node.leaving = (program, time.monotonic() + _GRACE)

    def _end_all(self) -> None:
        """Let all programs end, and kill those that do not."""
        for node in self.nodes:
            self._stop(node, crashed=False)
        while any(node.leaving for node in self.nodes):
            self._end_leaving()
            time.sleep(0.005)

    def _end_leaving(self) -> None:
        """Reap the programs that have left, and kill those that have not in time."""
        for node in self.nodes:
            if node.leaving is not None:
                program, until = node.leaving
                if program.process.poll() is not None or time.monotonic() > until:
                    program.kill()
                    node.leaving = None

    def _fail(self, node: Node, cause: str) -> None:
        """Stop a program that misbehaved, and note the cause."""
        node.failed = True
        self.failures.append(Failure(node.name, round(self.now() / SECOND, 1), cause))
        self._stop(node, crashed=True)

    def _ask(self, node: Node, kind: str, broadcast: Broadcast | None = None, **fields: Any) -> None:
        """Send a request of the client to a program and expect an answer."""
        program = node.program
        if program is None or (not node.ready and kind != "init"):
            return
        id = next(self._message_ids)
        node.asked[id] = (kind, time.monotonic() + self._settings.patience, broadcast)
        body = {"type": kind, "msg_id": id, **fields}
        self._write(node, {"src": CLIENT, "dest": node.id, "body": body})

    def _write(self, node: Node, message: Any) -> None:
        program = node.program
        assert program is not None
        self.counts.unread += not program.write(message)
        if program.waiting and program.stdin not in self._selector.get_map():
            self._selector.register(program.stdin, selectors.EVENT_WRITE, (node, program, "stdin"))

    def _tell_neighbours(self, node: Node) -> None:
        pairs = [pair for pair in self._links if node.place in pair]
        peers = sorted(self.nodes[b if a == node.place else a].id for a, b in pairs)
        self._ask(node, "topology", topology={node.id: peers})

    def _change_link(self, a: NodeId, b: NodeId, up: bool) -> None:
        pair = (min(a, b), max(a, b))
        if up:
            self._links[pair] = next(self._numbers)
        else:
            self._links.pop(pair, None)
        self._changed |= {a: None, b: None}

    def _say_next(self, node: Node) -> None:
        """Ask for the next broadcast when the one before was answered: a client does one thing at a time."""
        if not node.ready or not node.todo or any(kind == "broadcast" for kind, _, _ in node.asked.values()):
            if node.program is None:
                self.counts.unsaid += len(node.todo)
                node.todo.clear()
            return
        number = node.todo.popleft()
        broadcast = self._broadcasts[number] = node.observed.requested(self.now(), number)
        if self._settings.watch == "read":  # when a program acknowledges is then its own business
            broadcast.at_request()
        self._ask(node, "broadcast", broadcast, message=number)

    def _serve(self, node: Node, program: Program, what: str) -> None:
        """A pipe of a program is ready."""
        if what == "stderr":
            if not program.read_errors():
                self._selector.unregister(program.stderr)
            return
        if what == "stdin":
            program.flush()
            if not program.waiting:
                self._selector.unregister(program.stdin)
            return
        try:
            for message, size in program.read():
                self._take(node, message, size)
        except Misbehaved as error:
            self._fail(node, str(error))

    def _check(self, node: Node, program: Program, now: float) -> None:
        """Stop a program that ended, closed its output, or owes an answer for too long."""
        if (ending := program.ending(now)) is not None:
            self._fail(node, ending)
            return
        for id, (kind, asked, _) in node.asked.items():
            if now > asked and _is_awaited(kind):
                patience = f"{self._settings.patience:g} s"
                self._fail(node, f"hangs: no answer to {kind} (msg_id {id}) within {patience}")
                return

    def _take(self, node: Node, message: Message, size: int) -> None:
        """Take a message that a program printed. Raise Misbehaved if it cannot be one."""
        body = message.body
        if message.src != node.id:
            raise Misbehaved(f"sends as {printable(message.src, 40)!r}, but it is {node.id!r}")
        target = self._by_id.get(message.dest)
        if target is not None:
            self._send(node, target, message, size)
        elif body["type"] == "deliver":
            self._deliver(node, number_of(body.get("message")))
        elif type(reply := body.get("in_reply_to")) is int and reply in node.asked:
            self._answer(node, *node.asked.pop(reply), body)

    def _answer(self, node: Node, kind: str, asked: float, broadcast: Broadcast | None, body: Any) -> None:
        said = body["type"]
        if said == "error" and kind != "init":
            self.counts.refused += kind == "broadcast"
        elif said != f"{kind}_ok":
            raise Misbehaved(f"answers {kind} with {printable(said, 40)!r}")
        elif kind == "init":
            node.ready = True
            self._tell_neighbours(node)
        elif kind == "broadcast":
            assert broadcast is not None
            self.counts.broadcasts += 1
            broadcast.happened(self.now())
        elif kind == "read" and self._settings.watch == "read":
            self._has(node, body.get("messages"))
        self._say_next(node)

    def _deliver(self, node: Node, number: int) -> None:
        if self._settings.watch == "deliver":
            node.observed.delivered(self.now(), self._broadcasts.get(number), number)

    def _has(self, node: Node, messages: Any) -> None:
        """Take what a program has. New messages of one answer have no order: they take that of the requests."""
        if not isinstance(messages, list):
            raise Misbehaved("answers read without a list of messages")
        for number in sorted(number_of(value) for value in messages):
            if number not in node.has:
                node.has.add(number)
                node.observed.delivered(self.now(), self._broadcasts.get(number), number)

    def _send(self, node: Node, target: Node, message: Message, size: int) -> None:
        """Carry a message from one node to another, if a link is up and the draw says so."""
        self.counts.sent += 1
        pair = (min(node.place, target.place), max(node.place, target.place))
        link = self._links.get(pair, -1)
        if link < 0 and node is not target:
            self.counts.unlinked += 1
            return
        takes = 0 if node is target else self._settings.fate(node.place, target.place)
        if takes is None:
            self.counts.lost += 1
            return
        node.in_flight += size
        if node.in_flight > MOST_IN_FLIGHT_BYTES:
            raise Misbehaved(f"floods: more than {MOST_IN_FLIGHT_BYTES:,} bytes in flight")
        self._at(self.now() + takes, _LAND, node, target, pair, link, message, size)

    def _land(self, node: Node, target: Node, pair: Any, link: int, message: Message, size: int) -> None:
        node.in_flight = max(0, node.in_flight - size)
        if self._links.get(pair, -1) != link or not target.ready:
            self.counts.cut += 1
            return
        self.counts.carried += 1
        self._write(target, message)

    def _read_all(self) -> None:
        """Ask every program once more what it has, and wait for the answers."""
        for node in self.nodes:
            self._ask(node, "read")
        while any(kind == "read" for node in self.nodes for kind, _, _ in node.asked.values()):
            self._turn()


def _is_awaited(kind: str) -> bool:
    """Return whether a program must answer a request. Nothing depends on the answer to `topology`."""
    return kind != "topology"
