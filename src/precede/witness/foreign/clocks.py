"""Compares the clocks of a foreign log with what its rows say. Clocks decide nothing; disagreement is stated.

Three questions, each counted:

* Are the rows of a node in the order of the node's own entry in its clock?
* For each message and each other source: how many of the source's broadcasts are in the message's past, by the
  rows and by the clocks?
* Which deliveries are late, by the rows (that is the witness's check of causal order) and by the clocks?
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from precede.witness.checks.engine import Engine, Turns
from precede.witness.foreign.events import Clock, Event
from precede.witness.history import LATE, History

MOST_ENTRIES: Final = 5_000_000
"""The most entries of clocks that are kept in memory. Clocks of further rows are not compared."""
MOST_PAIRS: Final = 20_000_000
MOST_ROWS: Final = 2_000_000


class Agreement(Struct, frozen=True):
    """How the clocks of a log agree with its rows.

    `rows_in_order` of `rows` are in the order of their own clock. Of `pairs` (a message and another source),
    `more` have more messages in their past by the clocks than by the rows, `fewer` have fewer. `late_both`,
    `late_rows` and `late_clocks` count deliveries that are late by both, by the rows only, by the clocks only.
    `whole` is False if there were too many clocks to compare all.
    """

    rows: int
    rows_in_order: int
    pairs: int = 0
    more: int = 0
    fewer: int = 0
    late_both: int = 0
    late_rows: int = 0
    late_clocks: int = 0
    whole: bool = True

    @property
    def agrees(self) -> bool:
        """True if rows and clocks agree about everything that was compared."""
        return self.rows == self.rows_in_order and not (
            self.more or self.fewer or self.late_rows or self.late_clocks
        )

    def plain(self) -> dict[str, Any]:
        return {"agrees": self.agrees, **{name: getattr(self, name) for name in self.__struct_fields__}}

    def lines(self) -> list[str]:
        word = "agree with" if self.agrees else "DISAGREE with"
        part = "" if self.whole else " (as far as they were compared: there are too many)"
        lines = [
            f"clocks {word} the rows{part}; they decide nothing",
            f"  {self.rows_in_order:,} of {self.rows:,} rows are in the order of their node's own clock",
        ]
        if self.pairs:
            same = self.pairs - self.more - self.fewer
            lines.append(
                f"  {same:,} of {self.pairs:,} pairs (message, other source) have the same past by both"
            )
            if self.more or self.fewer:
                lines.append(f"  {self.more:,} have more in it by the clocks, {self.fewer:,} fewer")
            late = f"{self.late_both:,} by both, {self.late_rows:,} by the rows only"
            lines.append(f"  late deliveries: {late}, {self.late_clocks:,} by the clocks only")
        return lines


class Clocks:
    """Collects the clocks of a log while it is read. `broadcast` has the words that mean a broadcast."""

    def __init__(self, broadcast: Collection[str]) -> None:
        self._broadcast = broadcast
        self._stamps: dict[str, Clock] = {}
        self._own: dict[str, int] = {}
        self._rows = self._in_order = self._entries = 0
        self._whole = True

    def add(self, event: Event) -> None:
        """Take the clock of an event, if it has one."""
        if event.clock is None:
            return
        own = event.clock.get(event.node, 0)
        self._rows += 1
        self._in_order += own > 0 and own >= self._own.get(event.node, 0)
        self._own[event.node] = own
        if event.message is None or event.kind not in self._broadcast:
            return
        self._entries += len(event.clock)
        if self._entries > MOST_ENTRIES:
            self._whole = False
        else:
            self._stamps[event.message] = event.clock

    def compare(self, histories: Sequence[History]) -> Agreement | None:
        """Compare the clocks with the rows; None if the log has no clocks."""
        if self._rows == 0:
            return None
        whole = self._whole and sum(len(history.events) for history in histories) <= MOST_ROWS
        if not (self._stamps and whole):
            return Agreement(self._rows, self._in_order, whole=whole)
        return _Comparison(histories[0], self._stamps).agreement(self._rows, self._in_order)


class _Comparison:
    """Compares the rows of a history with the clocks of its broadcasts, by message id."""

    def __init__(self, history: History, stamps: Mapping[str, Clock]) -> None:
        lists = {
            name: [int(n) for n in getattr(history, name)] for name in ("start", "events", "source", "base")
        }
        self._history = replace(history, **lists)
        self._names = [history.nodes[int(node)] for node in history.node_of]
        self._stamps = [stamps.get(history.message_name(m)) for m in range(history.messages)]
        self._own = [self._own_entries(p) for p in range(history.processes)]

    def agreement(self, rows: int, rows_in_order: int) -> Agreement:
        """Return the agreement, with the counts of rows in the order of their own clock."""
        engine, history = Engine(), self._history
        marks = engine.marks(len(history.events))
        turns = Turns(engine, history, marks)
        engine.mark_late_causal(history, marks, turns.who, turns.until, turns.count)
        by_rows = {event for event in range(len(history.events)) if marks[event] & LATE}
        by_clocks = {event for p in range(history.processes) for event in self._late(p)}
        pairs, more, fewer = self._pasts(turns)
        return Agreement(
            rows=rows,
            rows_in_order=rows_in_order,
            pairs=pairs,
            more=more,
            fewer=fewer,
            late_both=len(by_rows & by_clocks),
            late_rows=len(by_rows - by_clocks),
            late_clocks=len(by_clocks - by_rows),
        )

    def _own_entries(self, p: int) -> list[int] | None:
        """Return a source's own entries in the clocks of its messages; None if one is missing or goes down."""
        stamps = self._stamps[self._history.base[p] : self._history.base[p + 1]]
        entries = [0 if stamp is None else stamp.get(self._names[p], 0) for stamp in stamps]
        return entries if all(entries) and entries == sorted(entries) else None

    def _late(self, p: int) -> Iterator[int]:
        """Yield the deliveries of a process that are late by the clocks of the messages it delivered before."""
        history = self._history
        known: dict[str, int] = {}
        for event in range(history.start[p], history.start[p + 1]):
            code = history.events[event]
            stamp = self._stamps[code >> 1] if code >= 0 and code & 1 else None
            if stamp is None:
                continue
            source = self._names[history.source[code >> 1]]
            if known.get(source, 0) >= stamp.get(source, 0) > 0:
                yield event
            else:
                for name, count in stamp.items():
                    known[name] = max(count, known.get(name, 0))

    def _pasts(self, turns: Turns) -> tuple[int, int, int]:
        """Compare the past of each message by the rows with that by the clocks, for each other source.

        By the rows: the highest rank of the source's messages in the past, as the check of causal order has it.
        By the clocks: how many of the source's own entries are not above its entry in the message's clock.
        """
        history = self._history
        pairs = more = fewer = 0
        clocks: list[dict[int, int]] = [{} for _ in self._names]
        pasts: dict[int, dict[int, int]] = {}
        cursor = list(history.start)
        for turn in range(turns.count):
            p = turns.who[turn]
            clock = clocks[p]
            for code in history.events[cursor[p] : turns.until[turn]]:
                if code < 0:
                    continue
                m = code >> 1
                if code & 1:
                    s = history.source[m]
                    for t, rank in (*pasts[m].items(), (s, m - history.base[s] + 1)):
                        clock[t] = max(rank, clock.get(t, 0))
                    continue
                pasts[m] = clock.copy()
                stamp = self._stamps[m]
                for s, own in enumerate(self._own):
                    if s == p or not own or stamp is None or pairs == MOST_PAIRS:
                        continue
                    by_clocks = bisect_right(own, stamp.get(self._names[s], 0))
                    pairs += 1
                    more += by_clocks > clock.get(s, 0)
                    fewer += by_clocks < clock.get(s, 0)
            cursor[p] = turns.until[turn]
        return pairs, more, fewer
