"""A plain reading of the rules and of display order, from the rows of a simulated world alone.

It shares no code with the rules or the witness. It replays every screen, computes each message's number as the
rule's text says, and compares every insertion with the sorted list, and every pair of messages on each screen
with happened-before, which it keeps as sets of messages.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from precede.core.instants import parse_duration
from precede.experiments.swarm.events import events_of

Message = tuple[int, int, int]
Process = tuple[str, int]


class Oracle:
    """Reads a log in the order in which the world wrote it; `faults` are lines about misplaced messages.

    `uncertain` is set if a crash fell between the saving of an own message and its broadcast row: then the row
    has the clock of the restart, and the message the clock before the crash.
    """

    def __init__(self, rule: str, options: dict[str, Any], log: pa.Table) -> None:
        self.rule = rule
        self.guard = parse_duration(options.get("guard", "0s"))
        self.history = int(options.get("history", 2))
        self.waits_for_ever = rule == "sds" and options.get("wait") in (None, "none")
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.uncertain = False
        self.screens: dict[Process, list[Message]] = {}
        self.numbers: dict[tuple[Process, Message], Any] = {}
        self.stamps: dict[Message, int] = {}
        self.past: dict[Message, set[Message]] = {}
        self.known: dict[Process, set[Message]] = {}
        self.started: dict[Process, int] = {}
        self.restarted: dict[Process, int] = {}
        self.arrived: dict[tuple[Process, Message], int] = {}
        self.named: dict[Message, list[Message]] = {}
        self.above: dict[Process, Message | None] = {}
        for row in events_of(log, "started", "broadcast", "received", "delivered", "observed"):
            self.read(row)

    def read(self, row: dict[str, Any]) -> None:
        process, clock = (row["node"], row["incarnation"]), row["clock_us"]
        screen = self.screens.setdefault(process, [])
        if row["kind"] == "started":
            if process in self.started:
                self.restarted[process] = row["at_us"]
            self.started[process] = clock
            self.above[process] = None
            for key in [key for key in self.arrived if key[0] == process and key[1] not in screen]:
                self.arrived[key] = clock  # it is taken up again from the disk
            return
        message = (int(row["message_source"]), row["message_incarnation"], row["message_number"])
        if row["kind"] == "broadcast":
            self.uncertain |= row["at_us"] == self.restarted.get(process)
            self.past[message] = set(self.known.setdefault(process, set()))
            self.known[process] |= {message}
            self.stamps[message] = self.stamp(process, screen, clock)
            self.named[message] = screen[-self.history :]
        elif row["kind"] == "received":
            self.arrived[process, message] = clock
        elif row["kind"] == "observed":
            assert row["reason"] == "above"
            self.above[process] = message
        else:
            self.show(process, screen, message)

    def stamp(self, process: Process, screen: list[Message], clock: int) -> int:
        """The number that the author of a new message gives it."""
        if self.rule == "timestamp":
            return clock
        last = max((self.stamps[message] for message in screen), default=0)
        return max(last, self.started[process]) + 1 if self.rule == "sds" else last + 1

    def number(self, process: Process, message: Message) -> Any:
        """The number by which a process sorts a message, and what breaks ties."""
        if self.rule == "arrival":
            return len(self.screens[process])
        number = self.stamps[message]
        if self.rule == "timestamp" and (process, message) in self.arrived:
            number = min(number, self.arrived[process, message] + self.guard)
        return number, message

    def show(self, process: Process, screen: list[Message], message: Message) -> None:
        above = self.above.get(process)
        place = len(screen) if above is None else screen.index(above)
        self.above[process] = None
        self.numbers[process, message] = self.number(process, message)
        answers = {other for other in screen if message in self.past[other]}
        wrong = answers & set(screen[:place]) or set(screen[place:]) & self.past[message]
        self.counts["answer_first"] += bool(answers)
        self.counts["answer_above"] += bool(wrong)
        self.counts["revisions"] += place < len(screen)
        self.counts["moved"] += len(screen) - place
        if self.waits_for_ever and not set(self.named[message]) <= set(screen):
            self.faults.append(f"{process} shows {message} without its history {self.named[message]}")
        screen.insert(place, message)
        self.known.setdefault(process, set()).update({message}, self.past[message])
        sorted_screen = sorted(screen, key=lambda each: self.numbers[process, each])
        if screen != sorted_screen:
            self.faults.append(f"{process} shows {message} at line {place} of {screen}")
