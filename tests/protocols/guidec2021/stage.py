"""A stage for worked examples: a test moves messages between orderings by hand; the witness checks the log.

Times are whole seconds of world time; an actor's clock may be ahead of it. The stage does the dissemination's
work: it hands a message to the ordering before its deadline, keeps it in a cache, notifies the ordering when it
expires there (up to `sweep` seconds late), and fires timers.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

from precede.core.dispatch import EffectHandler, store_value
from precede.core.effects import Accept, Deliver, Discard, Persist, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import SECOND
from precede.core.node import Context
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.options import read_struct
from precede.protocols.registry import Entry, find
from precede.witness.verify import verify


class Stage(EffectHandler):
    """Orderings (actors) by letter. World time never goes backwards from one call to the next."""

    def __init__(
        self, protocol: str | Entry, ahead: Mapping[str, int] | None = None, sweep: int = 0, **options: Any
    ) -> None:
        self.entry = find(protocol) if isinstance(protocol, str) else protocol
        self.options = read_struct(self.entry.options, options)
        self.ahead = dict(ahead or {})
        self.sweep = sweep
        self.actors: dict[str, Ordering] = {}
        self.incarnations: dict[str, int] = {}
        self.stores: dict[str, dict[Any, Any]] = {}
        self.timers: dict[tuple[str, Any], int] = {}
        self.cached: dict[tuple[str, str], Envelope] = {}
        self.rows: list[dict[str, Any]] = []
        self.steps: dict[str, int] = {}
        self.discarded: list[tuple[str, str, str]] = []
        self.accepted: list[Any] = []
        self.at = 0

    def broadcast(self, actor: str, at: int, lifetime: int | None = None) -> Envelope:
        """The actor broadcasts. Returns the envelope, for `arrive`."""
        self.until(at)
        lifetime_us = None if lifetime is None else lifetime * SECOND
        envelope, effects = self._actor(actor).stamp(b"x", self._clock(actor), None, lifetime_us)
        self._carry_out(actor, effects)
        return envelope

    def arrive(self, actor: str, envelope: Envelope, at: int) -> None:
        """The actor receives a message, unless its deadline has passed."""
        self.until(at)
        effects: list[Any] = []
        if envelope.deadline is None or envelope.deadline > self._clock(actor):
            self.cached[actor, str(envelope.message.id)] = envelope
            self._actor(actor).arrive((envelope,), self._clock(actor), effects)
        self._carry_out(actor, effects)

    def evict(self, actor: str, envelope: Envelope, at: int) -> None:
        """The cache is full: the message leaves it before its deadline."""
        self.until(at)
        del self.cached[actor, str(envelope.message.id)]

    def stop(self, actor: str, at: int) -> None:
        """The actor goes down. Its timers and its cache are gone."""
        self.until(at)
        self.timers = {key: at for key, at in self.timers.items() if key[0] != actor}
        self.cached = {key: envelope for key, envelope in self.cached.items() if key[0] != actor}

    def start(self, actor: str, at: int) -> None:
        """The actor starts again with everything it persisted."""
        self.until(at)
        saved = {
            key: msgspec.msgpack.decode(msgspec.msgpack.encode(value))
            for key, value in self.stores[actor].items()
        }
        self.actors[actor] = ordering = self._build(actor)
        self._carry_out(actor, ordering.start(self._clock(actor), saved))

    def restart(self, actor: str, at: int) -> None:
        """The actor stops and starts again as a new incarnation, without its saved state."""
        self.stop(actor, at)
        self.incarnations[actor] += 1
        self.stores[actor] = {}
        self.start(actor, at)

    def until(self, at: int) -> None:
        """Fire the timers and expire the cached messages that are due up to this instant, in order of time."""
        while True:
            due = [(when, 0, key) for key, when in self.timers.items()]
            due += [
                (envelope.deadline - self._ahead(key[0]) + self.sweep * SECOND, 1, key)
                for key, envelope in self.cached.items()
                if envelope.deadline is not None
            ]
            due = sorted((item for item in due if item[0] <= at * SECOND), key=lambda item: item[:2])
            if not due:
                break
            when, kind, key = due[0]
            self.at = max(self.at, when)
            effects: list[Any] = []
            if kind == 0:
                del self.timers[key]
                self.actors[key[0]].timer(key[1], self._clock(key[0]), effects)
            else:
                self.actors[key[0]].dropped(self.cached.pop(key), self._clock(key[0]), effects)
            self._carry_out(key[0], effects)
        self.at = max(self.at, at * SECOND)

    def delivered(self, actor: str) -> list[str]:
        """The messages an actor delivered in its present incarnation, as `A1`, `A'2`, ..."""
        return [
            name_of(row)
            for row in self.rows
            if row["kind"] == "delivered"
            and row["node"] == actor
            and row["incarnation"] == self.incarnations[actor]
        ]

    def violations(self, order: str) -> int:
        """The number of violations that the witness finds in the log; it knows nothing of barriers."""
        verdict = verify(pa.Table.from_pylist(self.rows), order)
        assert verdict.verdict != "unknown", verdict
        return verdict.violations

    def _actor(self, name: str) -> Ordering:
        if name not in self.actors:
            self.incarnations[name] = 0
            self.stores[name] = {}
            self.steps[name] = 0
            self.actors[name] = self._build(name)
        return self.actors[name]

    def _build(self, name: str) -> Ordering:
        assert self.entry.ordering is not None
        context = Context(ord(name), (), self.options, Random(1), self.incarnations[name])
        return self.entry.ordering(context)

    def _ahead(self, actor: str) -> int:
        return self.ahead.get(actor, 0) * SECOND

    def _clock(self, actor: str) -> int:
        return self.at + self._ahead(actor)

    def _carry_out(self, actor: str, effects: Any) -> None:
        self.carry_out(ord(actor), effects, self._clock(actor))

    def set_timer(self, node: NodeId, effect: SetTimer, now: int) -> None:
        self.timers[chr(node), effect.key] = max(effect.at - self._ahead(chr(node)), self.at)

    def persist(self, node: NodeId, effect: Persist, now: int) -> None:
        store_value(self.stores[chr(node)], effect)

    def discard(self, node: NodeId, effect: Discard, now: int) -> None:
        self.discarded.append((chr(node), effect.reason, name(effect.message.id)))

    def accept(self, node: NodeId, effect: Accept, now: int) -> None:
        id = effect.message.id
        if id not in self.accepted:
            self.accepted.append(id)
            self._row(chr(node), "broadcast", id, effect.deadline)

    def deliver(self, node: NodeId, effect: Deliver, now: int) -> None:
        self._row(chr(node), "delivered", effect.message.id, None)

    def _row(self, actor: str, kind: str, id: Any, deadline: int | None) -> None:
        self.steps[actor] += 1
        self.rows.append(
            {
                "node": actor,
                "incarnation": self.incarnations[actor],
                "step": self.steps[actor],
                "at_us": self.at,
                "clock_us": self._clock(actor),
                "kind": kind,
                "message_source": chr(id.source),
                "message_incarnation": id.incarnation,
                "message_number": id.number,
                "deadline_us": deadline,
            }
        )


def name(id: Any) -> str:
    """A message's name in these tests: letter, one prime for each later incarnation, number."""
    return chr(id.source) + "'" * id.incarnation + str(id.number)


def name_of(row: Mapping[str, Any]) -> str:
    """The same, from a log row."""
    return row["message_source"] + "'" * row["message_incarnation"] + str(row["message_number"])
