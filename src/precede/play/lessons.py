"""Lessons: small worlds with one thing to try, and text that follows what the player does.

A lesson is a file in `worlds`, beside its scenario: steps that are shown one after the other, each when a fact
has reached a number. Asides are shown whenever theirs has. `recorded` are inputs that lead through the lesson:
the static page replays them, and the tests check that they show what the lesson promises.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.instants import Instant, parse_duration
from precede.experiments.run import Run
from precede.experiments.scenario import read_scenario
from precede.play.record import Input
from precede.play.session import Session

Fact: TypeAlias = Literal[
    "said",
    "answered",
    "cut",
    "mended",
    "crashed",
    "restarted",
    "seconds",
    "misordered",
    "waited",
    "waiting",
    "released",
    "expired",
    "together",
]
"""What the player did (the first six), how long the world has run, and what happened in it since.

`misordered`: violations without order. The others are about the side with order: most messages that waited at
once, messages that wait now, that were delivered after a wait, that were discarded after their lifetime;
packets that carry several messages.
"""
_DID: Final = {"say": "said", "cut": "cut", "mend": "mended", "crash": "crashed", "restart": "restarted"}


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A text that is shown once every fact in `when` has reached its number."""

    text: str
    when: dict[Fact, int] = {}


class RecordedInput(Struct, frozen=True, forbid_unknown_fields=True):
    """One input of a recorded lesson; `at` is a duration from the beginning."""

    at: str
    action: Literal["say", "crash", "restart", "cut", "mend"]
    node: str
    peer: str | None = None
    text: str = ""
    to: tuple[str, ...] | None = None
    answers: str | None = None

    def input(self) -> Input:
        values = {key: value for key, value in msgspec.to_builtins(self).items() if key != "at"}
        return Input(at_us=parse_duration(self.at), **{**values, "to": self.to})


class Lesson(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One lesson. `paper` is the figure that it shows, if it is about one."""

    key: str
    title: str
    place: int
    question: str
    try_this: str
    steps: tuple[Step, ...]
    asides: tuple[Step, ...] = ()
    speed: float = 1.0
    paper: str = ""
    scenario: str = ""
    recorded: tuple[RecordedInput, ...] = ()
    recorded_end: str

    def run(self) -> Run:
        """Return the run of the lesson's world."""
        path = files("precede.play") / "worlds" / f"{self.scenario or self.key}.toml"
        return read_scenario(str(path))

    def inputs(self) -> tuple[Input, ...]:
        return tuple(item.input() for item in self.recorded)

    def end(self) -> Instant:
        return parse_duration(self.recorded_end)

    def listed(self) -> dict[str, Any]:
        """Return the lesson as a page lists it."""
        return {"key": self.key, "title": self.title, "paper": self.paper}

    def plain(self) -> dict[str, Any]:
        """Return the lesson as a page shows it, without the steps: these come with the frames."""
        return {
            **self.listed(),
            "question": self.question,
            "try_this": self.try_this,
            "steps": len(self.steps),
            "speed": self.speed,
        }


class Progress:
    """How far the player has come in a lesson."""

    def __init__(self, lesson: Lesson | None) -> None:
        self._lesson = lesson
        self._done = 0
        self._asides: dict[str, None] = {}
        self._received: dict[tuple[int, str], Instant] = {}
        self.facts: dict[str, int] = {}

    def seen(self, session: Session, frame: dict[str, Any]) -> dict[str, Any] | None:
        """Take the next frame into account; return the steps and asides that are shown now."""
        if self._lesson is None:
            return None
        self._count(session, frame)
        steps = self._lesson.steps
        while self._done < len(steps) and self._holds(steps[self._done]):
            self._done += 1
        for aside in self._lesson.asides:
            if self._holds(aside):
                self._asides.setdefault(aside.text)
        return {
            "done": [step.text for step in steps[: self._done]],
            "asides": list(self._asides),
            "finished": self._done == len(steps),
        }

    def _holds(self, step: Step) -> bool:
        return all(self.facts.get(fact, 0) >= least for fact, least in step.when.items())

    def _count(self, session: Session, frame: dict[str, Any]) -> None:
        facts = dict.fromkeys(_DID.values(), 0) | {"answered": 0}
        for item in session.effective:
            facts[_DID[item.action]] += 1
            facts["answered"] += item.answers is not None
        ordered, unordered = frame["sides"]["ordered"], frame["sides"]["unordered"]
        facts |= {fact: self.facts.get(fact, 0) for fact in ("released", "expired", "together")}
        for at, kind, node, message, _, messages, reason in ordered["events"]:
            if kind == "received":
                self._received[node, message] = at
            elif kind == "delivered":  # a wait may begin and end between two frames
                facts["released"] += self._received.pop((node, message), at) < at
            facts["together"] += kind == "sent" and (messages or 0) > 1
            facts["expired"] += kind == "discarded" and str(reason).startswith(("expired", "late"))
        facts["seconds"] = frame["now"] // 1_000_000
        facts["misordered"] = unordered["violations"]
        facts["waiting"] = ordered["waiting_count"]
        facts["waited"] = max(self.facts.get("waited", 0), ordered["waiting_count"], min(facts["released"], 1))
        self.facts = facts


@cache
def lessons() -> dict[str, Lesson]:
    """Return all lessons by their keys, in the order in which they are listed."""
    folder = files("precede.play") / "worlds"
    read = [
        msgspec.convert(tomllib.loads(item.read_text(encoding="utf-8")), Lesson)
        for item in folder.iterdir()
        if item.name.endswith(".lesson.toml")
    ]
    return {lesson.key: lesson for lesson in sorted(read, key=lambda lesson: lesson.place)}
