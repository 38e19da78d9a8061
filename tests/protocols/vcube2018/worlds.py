"""Small random worlds, cheap enough to run thousands: each packet has a random delay, and links are not FIFO.

A delay depends on the link and on the packet's ordinal number on that link, never on its content. So two
implementations that send the same packets see the same world.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

from precede.core.effects import WIRED, Accept, Arrive, Deliver, Effects, Send
from precede.core.identity import MessageId, NodeId
from precede.core.node import Node


class Trace:
    """The packets of a run in the order of sending, and each node's broadcasts and deliveries in order."""

    def __init__(self, nodes: int) -> None:
        self.packets: list[tuple[int, NodeId, NodeId, tuple[MessageId, ...], int]] = []
        self.history: list[list[tuple[str, MessageId]]] = [[] for _ in range(nodes)]
        self.broadcasts: list[MessageId] = []

    def delivered(self, node: NodeId) -> list[MessageId]:
        """The messages that a node delivered, in order."""
        return [id for kind, id in self.history[node] if kind == "deliver"]

    def undelivered(self) -> int:
        """How many deliveries are missing."""
        return sum(len(set(self.broadcasts) - set(self.delivered(node))) for node in range(len(self.history)))

    def duplicates(self) -> int:
        """How many deliveries are repeated."""
        return sum(len(ids) - len(set(ids)) for ids in map(self.delivered, range(len(self.history))))

    def sent_twice(self) -> int:
        """How many times a message was sent again to a node that was sent it before."""
        copies = Counter((to, id) for _, _, to, ids, _ in self.packets for id in ids)
        return sum(count - 1 for count in copies.values())

    def disorder(self) -> int:
        """How many deliveries violate causal order, judged by the histories alone."""
        past: dict[MessageId, frozenset[MessageId]] = {}
        delivered = [set[MessageId]() for _ in self.history]
        pasts = [set[MessageId]() for _ in self.history]
        progress = [0] * len(self.history)
        moved, wrong = True, 0
        while moved:
            moved = False
            for node, history in enumerate(self.history):
                while progress[node] < len(history):
                    kind, id = history[progress[node]]
                    if kind == "accept":
                        past[id] = frozenset(pasts[node])
                    elif id not in past:
                        break
                    else:
                        wrong += not past[id] <= delivered[node]
                        delivered[node].add(id)
                        pasts[node] |= past[id] | {id}
                    progress[node] += 1
                    moved = True
        assert all(done == len(history) for done, history in zip(progress, self.history, strict=True))
        return wrong


def play(
    nodes: int,
    make: Callable[[NodeId], Node],
    seed: int,
    most_messages: int = 4,
    heavy: bool = True,
) -> Trace:
    """Run one world of random broadcasts and heavy-tailed delays until no packet is in flight."""
    rng = random.Random(seed)
    machines = [make(node) for node in range(nodes)]
    trace = Trace(nodes)
    queue: list[tuple[int, int, Callable[[int], None]]] = []
    rank = 0
    sent: Counter[tuple[NodeId, NodeId]] = Counter()
    tail = rng.choice((0.7, 1.2, 3.0)) if heavy else 3.0
    span = rng.choice((50, 300, 2000))

    def push(at: int, function: Callable[[int], None]) -> None:
        nonlocal rank
        rank += 1
        heappush(queue, (at, rank, function))

    def carry_out(node: NodeId, effects: Effects, now: int) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                ids = tuple(stamped.message.id for stamped in effect.packet.content)
                trace.packets.append((now, node, effect.to, ids, effect.packet.size_bytes))
                sent[node, effect.to] += 1
                link = random.Random(f"{seed} {node} {effect.to} {sent[node, effect.to]}")
                delay = 1 + int(20 * link.paretovariate(tail))
                push(now + delay, lambda at, s=effect, n=node: arrive(s, n, at))
            elif isinstance(effect, Deliver):
                trace.history[node].append(("deliver", effect.message.id))
            elif isinstance(effect, Accept):
                trace.broadcasts.append(effect.message.id)
                trace.history[node].append(("accept", effect.message.id))
            else:
                assert isinstance(effect, Arrive), effect

    def arrive(send: Send, sender: NodeId, now: int) -> None:
        carry_out(send.to, machines[send.to].receive(send.packet, sender, now, WIRED), now)

    for node in range(nodes):
        for _ in range(rng.randint(0, most_messages)):
            payload = bytes(rng.choice((0, 5, 50)))
            push(
                rng.randrange(span),
                lambda at, n=node, p=payload: carry_out(n, machines[n].broadcast(p, at), at),
            )
    while queue:
        at, _, function = heappop(queue)
        function(at)
    trace.machines = machines
    return trace
