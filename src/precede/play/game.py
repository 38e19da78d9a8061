"""What a page may ask of a game: let time pass, do something, save, open a lesson, start again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from precede.core.errors import BadInput
from precede.experiments.run import Run
from precede.play.lessons import Lesson, Progress, lessons
from precede.play.record import Record, input_of
from precede.play.saving import save
from precede.play.session import Session

MOST_ADVANCE_US: Final = 3_600_000_000
"""The longest time that one request may let pass, in microseconds."""
_LARGEST_SEED: Final = (1 << 31) - 1


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """One request of a page; `do` says what is asked for, and which of the other fields count."""

    do: str
    us: int = 0
    input: dict[str, Any] | UnsetType = UNSET
    lesson: str | None = None
    seed: int | None = None


class Game:
    """One session at a time, and the requests of pages. `out` is the folder below which worlds are saved."""

    def __init__(self, run: Run | None, out: Path, lesson: str | None = None) -> None:
        self.out = out
        self._own = run
        self._lock = Lock()
        self._do: dict[str, Callable[[Request], dict[str, Any]]] = {
            "state": self._state,
            "advance": self._advance,
            "input": self._input,
            "save": self._save,
            "open": self._open,
            "again": self._again,
        }
        self.open(lesson if run is None or lesson is not None else None)

    def open(self, lesson: str | None, seed: int | None = None) -> None:
        """Begin a lesson, or the scenario that the game was started with, from its beginning."""
        known = lessons()
        if lesson is None and self._own is None:
            lesson = next(iter(known))
        if lesson is not None and lesson not in known:
            raise BadInput(f"no lesson {lesson!r} (there are {', '.join(known)})")
        self.lesson: Lesson | None = None if lesson is None else known[lesson]
        run = self._own if self.lesson is None else self.lesson.run()
        assert run is not None
        self._begin(run if seed is None else replace(run, seed=seed))

    def answer(self, body: bytes) -> dict[str, Any]:
        """Answer one request. Raise `BadInput` if it cannot be carried out; nothing has changed then."""
        try:
            request = msgspec.json.decode(body, type=Request)
        except msgspec.DecodeError as error:
            raise BadInput(f"not a request: {error}") from error
        if request.do not in self._do:
            raise BadInput(f"not a request: do {request.do!r} (one of {', '.join(self._do)})")
        with self._lock:
            return self._do[request.do](request)

    def hello(self) -> dict[str, Any]:
        """Return what a page must know before the first frame: the world, and the lessons that it can open."""
        return {
            **self.session.hello(),
            "own": self._own is not None,
            "lesson": None if self.lesson is None else self.lesson.plain(),
            "lessons": [lesson.listed() for lesson in lessons().values()],
        }

    def frame(self) -> dict[str, Any]:
        """Return the next frame, with the lesson's text as far as the player has come."""
        frame = self.session.frame()
        return {**frame, "lesson": self.progress.seen(self.session, frame)}

    def _begin(self, run: Run) -> None:
        self.session = Session(run, self.lesson.title if self.lesson else "")
        self.progress = Progress(self.lesson)

    def _state(self, request: Request) -> dict[str, Any]:
        """Play the record once more: a page that was opened anew needs every event from the beginning."""
        record: Record = self.session.record()
        self._begin(self.session.run)
        for item in record.inputs:
            self.session.advance_to(item.at_us)
            self.session.apply(item)
        self.session.advance_to(record.end_us)
        return {"hello": self.hello(), "frame": self.frame()}

    def _advance(self, request: Request) -> dict[str, Any]:
        if not 0 <= request.us <= MOST_ADVANCE_US:
            raise BadInput(f"advance: us is not between 0 and {MOST_ADVANCE_US}")
        self.session.advance(request.us)
        return {"frame": self.frame()}

    def _input(self, request: Request) -> dict[str, Any]:
        if request.input is UNSET:
            raise BadInput("input: nothing to do")
        reasons = self.session.apply(input_of(request.input, self.session.now))
        return {"frame": self.frame(), "reasons": reasons}

    def _save(self, request: Request) -> dict[str, Any]:
        number = 1
        while (folder := self.out / f"{self.session.run.protocol}-{number}").exists():
            number += 1
        saved = save(self.session, folder)
        return {"folder": str(folder), "verdicts": saved.plain()}

    def _open(self, request: Request) -> dict[str, Any]:
        self.open(request.lesson)
        return {"hello": self.hello(), "frame": self.frame()}

    def _again(self, request: Request) -> dict[str, Any]:
        """Start the same world anew, without what the player did; with a seed: another world."""
        if request.seed is not None and not 0 <= request.seed <= _LARGEST_SEED:
            raise BadInput(f"again: seed is not between 0 and {_LARGEST_SEED}")
        seed = self.session.run.seed if request.seed is None else request.seed
        self._begin(replace(self.session.run, seed=seed))
        return {"hello": self.hello(), "frame": self.frame()}
