"""The check of display order: a list on a screen, into which messages are inserted (docs/concepts/display.md).

Each process has a screen. A delivery inserts its message: at the bottom, or directly above the message that a
row before the delivery names. Causality is that of causal order (`causal.py` explains the vectors). A delivery

* is an *answer first* if the process showed an answer to its message before: the causal check's late delivery;
* is an *answer above* if it puts an answer above its question, whichever of the two is inserted;
* is a *revision* if it inserts its message above others, which is no violation.

In plain Python only. The pasts of all messages are kept, because a question that comes late is compared with
every answer above its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from precede.witness.history import BOTTOM, LATE, MISPLACED, History, Ints


class Schedule(Protocol):
    """An order of all rows in which every broadcast precedes its deliveries: see `engine.Turns`."""

    who: Ints
    until: Ints
    count: int


class Screens(Struct):
    """The counts of one history. `unplaced` is the first row whose place is not on the screen, or -1."""

    answers_first: int = 0
    answers_above: int = 0
    revisions: int = 0
    moved: int = 0
    unplaced: int = -1

    def reasons(self, history: History) -> list[str]:
        """Return why the order cannot be decided: a message was shown above one that is not on the screen."""
        if self.unplaced < 0:
            return []
        row = history.row(self.unplaced)
        return [f"node {row.node}, step {row.step}: {row.message} is placed above a message that is not shown"]


class Causality:
    """Happened-before between messages whose broadcasts were visited: the past of each, as a sparse vector."""

    def __init__(self, history: History) -> None:
        self._source, self._base = history.source, history.base
        self._past: dict[int, dict[int, int]] = {}
        self._clocks: list[dict[int, int]] = [{} for _ in range(history.processes)]

    def broadcast(self, process: int, message: int) -> None:
        """Note what the source of a message knew when it broadcast it."""
        self._past[message] = self._clocks[process].copy()

    def deliver(self, process: int, message: int) -> bool:
        """Note a delivery. Is it late: has the process delivered a message that depends on it?"""
        clock, source = self._clocks[process], self._source[message]
        rank = message - self._base[source] + 1
        if clock.get(source, 0) >= rank:
            return True
        for other, last in self._past[message].items():
            if last > clock.get(other, 0):
                clock[other] = last
        clock[source] = rank
        return False

    def any_precedes(self, questions: Sequence[int], answer: int) -> bool:
        """Did one of these messages happen before the answer?"""
        source, base, past = self._source, self._base, self._past[answer]
        own = source[answer]
        for question in questions:
            other = source[question]
            if question < answer if other == own else past.get(other, 0) > question - base[other]:
                return True
        return False

    def any_follows(self, question: int, answers: Sequence[int]) -> bool:
        """Did the question happen before one of these messages?"""
        source, pasts, own = self._source, self._past, self._source[question]
        rank = question - self._base[own]
        for answer in answers:
            if question < answer if source[answer] == own else pasts[answer].get(own, 0) > rank:
                return True
        return False


def check_display(history: History, marks: Ints, turns: Schedule) -> Screens:
    """Replay the screens of all processes. Mark and count the rows that break the order, count revisions."""
    assert history.above is not None
    screens = Screens()
    causality = Causality(history)
    shown: list[list[int]] = [[] for _ in range(history.processes)]
    cursor = list(history.start)
    for turn in range(turns.count):
        process = turns.who[turn]
        screen = shown[process]
        for event in range(cursor[process], turns.until[turn]):
            code = history.events[event]
            if code < 0:
                continue
            message = code >> 1
            if code & 1 == 0:
                causality.broadcast(process, message)
                continue
            late = causality.deliver(process, message)
            place = place_on(screen, history.above[event])
            if place is None:
                place = len(screen)
                screens.unplaced = event if screens.unplaced < 0 else screens.unplaced
            if place < len(screen):
                screens.revisions += 1
                screens.moved += len(screen) - place
            if late:
                marks[event] |= LATE
                screens.answers_first += 1
            wrong = late and place == len(screen)  # the answer that makes it late is above the bottom
            wrong = wrong or causality.any_precedes(screen[place:], message)
            if wrong or (late and causality.any_follows(message, screen[:place])):
                marks[event] |= MISPLACED
                screens.answers_above += 1
            screen.insert(place, message)
        cursor[process] = turns.until[turn]
    return screens


def place_on(screen: list[int], above: int) -> int | None:
    """Return where a message is inserted that is shown above another; None if that one is not on the screen."""
    if above == BOTTOM:
        return len(screen)
    return screen.index(above) if above in screen else None


def find_inversion(history: History, event: int) -> tuple[list[int], list[int], int]:
    """Return the chain from a question to its answer that the row `event` put above it, and its links.

    A link is the row by which the source of the chain's next message knew the message before it. The last value
    is the row that showed the other of the two.
    """
    assert history.above is not None
    screen: list[int] = []
    rows: dict[int, int] = {}
    for row in range(int(history.start[history.process_of(event)]), event):
        code = history.events[row]
        if code >= 0 and code & 1:
            place = place_on(screen, history.above[row])
            screen.insert(len(screen) if place is None else place, code >> 1)
            rows[code >> 1] = row
    place = place_on(screen, history.above[event])
    message = history.events[event] >> 1
    place = len(screen) if place is None else place
    for question in screen[place:]:
        chain = _chain(history, question, message)
        if chain is not None:
            return *chain, rows[question]
    chains = ((_chain(history, message, answer), rows[answer]) for answer in screen[:place])
    return next((*chain, row) for chain, row in chains if chain is not None)


def _chain(history: History, question: int, answer: int) -> tuple[list[int], list[int]] | None:
    """Return a shortest chain between two messages, searched backwards and breadth first; None without one."""
    following: dict[int, tuple[int, int]] = {}
    explored = [int(first) for first in history.start]
    queue = [answer]
    for message in queue:
        if message == question:
            chain, links = [message], []
            while chain[-1] != answer:
                after, link = following[chain[-1]]
                chain.append(after)
                links.append(link)
            return chain, links
        source = history.source[message]
        for row in range(explored[source], history.position[message]):
            code = history.events[row]
            if code >= 0 and code >> 1 not in following and code >> 1 != answer:
                following[code >> 1] = (message, row)
                queue.append(code >> 1)
        explored[source] = max(explored[source], history.position[message])
    return None
