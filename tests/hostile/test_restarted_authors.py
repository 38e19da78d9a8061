"""A durable node of any protocol that is killed and restarts signs the same headers again.

Some protocols persist whole messages, others payloads only; either way a message that is sent before and after
a restart has one nonce and one link, and nobody can frame its author.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from precede.core.dispatch import store_value
from precede.core.effects import Persist, Send
from precede.core.identity import MessageId
from precede.core.instants import SECOND
from precede.core.node import Context
from precede.protocols import registry
from precede.runtime.evidence.headers import split
from precede.runtime.links.authorship import Authors
from precede.runtime.links.inspection import Inspection
from precede.runtime.store import Store
from tests.hostile.members import BEGIN, GROUP, HONEST, MAL, ROSTER, SEEDS, Combination, Group, Member
from tests.hostile.members import combinations as all_combinations


def is_durable(combination: Combination) -> bool:
    entry = registry.find(combination.protocol)
    return "durable" in registry.options_of_entry(entry, combination.dissemination or "direct")


COMBINATIONS = [each for each in all_combinations() if is_durable(each)]


class Watcher:
    """Reads everything that one member sends, before and after its restarts."""

    def __init__(self, made: Group, member: Member, folder: Path) -> None:
        self.made = made
        self.member = member
        self.saved: dict[Any, Any] = {}
        self.store = Store(folder / "store.db", synchronous=False)
        self.seen: dict[MessageId, set[tuple[bytes, bytes]]] = {}
        self.times: dict[MessageId, set[int]] = {}
        self.starts = 0
        self.is_cut_off = False
        self.reader = Authors(GROUP, MAL, SEEDS[MAL], ROSTER)
        self.contradictions: list[Any] = []
        self.reader.on_contradiction = lambda public, found: self.contradictions.append(found)
        member.authors.continue_chain(self.store)
        self._run, self._send = member.run, made.send
        member.run = self.run  # type: ignore[method-assign]
        made.send = self.send  # type: ignore[method-assign]

    def run(self, effects: Any) -> None:
        self.member.inspection.accepting(effects)
        for effect in effects:
            if isinstance(effect, Persist):
                value = msgspec.msgpack.decode(msgspec.msgpack.encode(effect.value))
                store_value(self.saved, Persist(effect.key, value))
        self._run(effects)

    def send(self, sender: Member, effect: Send, data: bytes) -> None:
        if sender is self.member:
            items = list(effect.packet.written())
            assert self.reader.check(items) is None
            for item in items:
                if item.message.id.source == sender.id and item.message.id.number:
                    parts = split(item.message.signature)
                    assert parts is not None
                    self.seen.setdefault(item.message.id, set()).add(parts[1:])
                    self.times.setdefault(item.message.id, set()).add(self.starts)
        if not (self.is_cut_off and sender is self.member):
            self._send(sender, effect, data)

    def restart(self, combination: Combination, options: dict[str, Any]) -> None:
        """Kill the member and start it from its saved state."""
        member, self.starts = self.member, self.starts + 1
        self.store.close()
        self.store = Store(self.store.path, synchronous=False)
        member.authors = Authors(GROUP, member.id, SEEDS[member.id], ROSTER)
        member.authors.continue_chain(self.store)
        member.inspection = Inspection(member.id, 0, member.authors)
        member.timers.clear()
        entry = registry.find(combination.protocol)
        members = HONEST if combination.protocol in ("drift", "tof") else (*HONEST, MAL)
        if combination.dissemination:
            options = {**options, "dissemination": combination.dissemination}
        context = Context(member.id, members, options, Random(9), 0)
        member.node = registry.make_entry(entry, member.role, context)
        now, peers = self.made.now, self.made.members
        member.run(member.node.start(now, self.saved))
        for a, b, over in self.made._links():
            if member.id in (a, b):
                other = b if a == member.id else a
                if other in peers:
                    peers[other].run(peers[other].node.link_down(member.id, now, over))
                    peers[other].run(peers[other].node.link_up(member.id, now, over))
                member.run(member.node.link_up(other, now, over))


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_a_restarted_node_signs_the_same_headers(combination: Combination, tmp_path: Path) -> None:
    options: dict[str, Any] = {"durable": True}
    if combination.protocol == "delta_causal":
        options["lifetime"] = "1h"
    made = Group(combination, **options)
    member = made.members[1]  # a host, in cells
    watcher = Watcher(made, member, tmp_path)
    made.run_until(BEGIN + 5 * SECOND)
    for _ in range(3):
        watcher.is_cut_off = True  # nothing of this arrives anywhere
        made.broadcast(member)
        made.broadcast(member)
        made.run_until(made.now + SECOND // 10)
        watcher.is_cut_off = False
        watcher.restart(combination, options)
        made.run_until(made.now + 20 * SECOND)
    watcher.store.close()
    # A host of `prs_mobile` sends its next message only after the first was acknowledged.
    assert len(watcher.seen) >= (1 if combination.protocol == "prs_mobile" else 4), watcher.seen
    assert all(len(trailers) == 1 for trailers in watcher.seen.values())
    links = [next(iter(watcher.seen[id]))[1] for id in sorted(watcher.seen)]
    assert all(links[1:])
    assert len(set(links)) == len(links)
    assert watcher.contradictions == []
    assert any(len(times) > 1 for times in watcher.times.values())
