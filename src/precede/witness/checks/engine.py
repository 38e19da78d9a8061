"""The engine that runs the checks over one history, in plain Python; `numba_engine.py` is for large logs."""

from collections.abc import Callable

from precede.witness import explain
from precede.witness.checks import causal, delta, fifo, integrity, total
from precede.witness.history import History, Ints


class Engine:
    """The checks and the storage they need, in plain Python on lists."""

    mark_repetitions: Callable[..., int] = staticmethod(integrity.mark_repetitions)
    mark_unaddressed: Callable[..., int] = staticmethod(integrity.mark_unaddressed)
    take_turns: Callable[..., int] = staticmethod(integrity.take_turns)
    break_ring: Callable[..., None] = staticmethod(integrity.break_ring)
    mark_late_fifo: Callable[..., int] = staticmethod(fifo.mark_late_fifo)
    mark_expired: Callable[..., int] = staticmethod(delta.mark_expired)
    agree_up_to: Callable[..., int] = staticmethod(total.agree_up_to)
    gather_rest: Callable[..., int] = staticmethod(total.gather_rest)
    index_places: Callable[..., None] = staticmethod(total.index_places)
    find_knots: Callable[..., int] = staticmethod(total.find_knots)
    distinct_opinions: Callable[..., int] = staticmethod(total.distinct_opinions)
    find_disagreement: Callable[..., bool] = staticmethod(total.find_disagreement)
    trace_back: Callable[..., bool] = staticmethod(explain.trace_back)

    def ints(self, count: int, fill: int = 0) -> Ints:
        return [fill] * count

    def marks(self, count: int) -> Ints:
        return bytearray(count)

    def copy(self, values: Ints) -> Ints:
        return list(values)

    def marked(self, marks: Ints, most: int) -> list[int]:
        """Return the first rows with a mark, at most `most`."""
        rows = []
        for event, mark in enumerate(marks):
            if mark:
                rows.append(event)
                if len(rows) == most:
                    break
        return rows

    def clear(self, marks: Ints, mark: int) -> None:
        for event, value in enumerate(marks):
            if value & mark:
                marks[event] = value & ~mark

    def pick(self, values: Ints, places: Ints) -> Ints:
        return [values[place] for place in places]

    def tally(self, values: Ints, count: int) -> Ints:
        """Return how often each of 0 .. count - 1 occurs; negative values are ignored."""
        counts = self.ints(count)
        for value in values:
            if value >= 0:
                counts[value] += 1
        return counts

    def deliveries_per_message(self, history: History) -> Ints:
        """Return the number of processes that deliver each message; masked repetitions do not count."""
        counts = self.ints(history.messages)
        for code in history.events:
            if code >= 0 and code & 1:
                counts[code >> 1] += 1
        return counts

    def find(self, values: Ints, begin: int, end: int, value: int) -> int:
        """Return the first index of a value in `values[begin:end]`, or -1."""
        return next((place for place in range(begin, end) if values[place] == value), -1)

    def mark_late_causal(self, history: History, marks: Ints, who: Ints, until: Ints, turns: int) -> int:
        """Mark every delivery after one of a message that depends on it. Returns the number of marked rows."""
        return causal.mark_late_causal(
            history.start, history.events, marks, history.source, history.base, who, until, turns
        )


class Turns:
    """A schedule of all rows in which every broadcast precedes its deliveries (see `integrity.take_turns`).

    In turn i process `who[i]` advances to row `until[i]`. `broken` counts the deliveries that precede their
    broadcast; they are marked and masked.
    """

    def __init__(self, engine: Engine, history: History, marks: Ints) -> None:
        processes, rows = history.processes, len(history.events)
        self.who, self.until = engine.ints(rows + processes), engine.ints(rows + processes)
        self.count = 0
        self.broken = 0
        cursor = engine.copy(history.start)
        waits, after, ready = engine.ints(processes, -1), engine.ints(processes), engine.ints(processes)
        parked = engine.ints(history.messages, -1)
        for p in range(processes):
            ready[p] = processes - 1 - p
        running, lowest = processes, 0
        while True:
            self.count = engine.take_turns(
                *(history.start, history.events, cursor, waits, parked, after, ready, running),
                *(self.who, self.until, self.count),
            )
            while lowest < processes and cursor[lowest] == history.start[lowest + 1]:
                lowest += 1
            if lowest == processes:
                return
            engine.break_ring(
                lowest, history.events, history.source, marks, cursor, waits, parked, after, ready
            )
            self.broken += 1
            running = 1


class Knots:
    """Runs the check of total order and holds its results.

    A knot is a set of messages whose local orders form cycles (see `total.py`). It is a violation if two
    processes deliver two of its messages in different order. `violations` adds, for each such knot, the number
    of its messages less one. `pairs` has for each such knot four rows that prove it. `cycle` is a cycle of one
    knot without a disagreement.
    """

    def __init__(self, engine: Engine, history: History) -> None:
        self.violations = 0
        self.pairs: list[tuple[int, int, int, int]] = []
        self.cycle: list[tuple[int, int]] = []
        processes, messages = history.processes, history.messages
        copies = engine.deliveries_per_message(history)
        cursor = engine.copy(history.start)
        taken = engine.agree_up_to(
            *(history.start, history.events, copies, engine.ints(messages), engine.ints(messages, -1)),
            *(engine.ints(processes), cursor, engine.ints(processes)),
        )
        left = int(sum(copies)) - taken
        if left:
            self._find_knots(engine, history, cursor, left)

    def _find_knots(self, engine: Engine, history: History, cursor: Ints, left: int) -> None:
        """Divide the remaining deliveries into knots, and add the result of each knot to this object."""
        messages = history.messages
        rest, origin, owner = engine.ints(left), engine.ints(left), engine.ints(left)
        engine.gather_rest(history.start, history.events, cursor, rest, origin, owner)
        place_start, places = engine.ints(messages + 1), engine.ints(left)
        engine.index_places(rest, left, place_start, places, engine.ints(messages))
        knot = engine.ints(messages, -1)
        seen, low, pointer, stack, calls = (engine.ints(messages) for _ in range(5))
        count = engine.find_knots(
            rest, owner, left, place_start, places, seen, low, knot, pointer, stack, calls
        )
        knot_start = engine.ints(count + 1)
        engine.index_places(engine.pick(knot, rest), left, knot_start, places, engine.ints(count))
        sizes = engine.tally(knot, count)
        self._judge(engine, history, rest, origin, owner, places, knot_start, sizes)

    def _judge(
        self,
        engine: Engine,
        history: History,
        rest: Ints,
        origin: Ints,
        owner: Ints,
        members: Ints,
        knot_start: Ints,
        sizes: Ints,
    ) -> None:
        """Decide for each knot whether it is a violation or only a cycle of more than two messages."""
        place, stamp = engine.ints(history.messages), engine.ints(history.messages, -1)
        heads, tails, hashes = (engine.ints(history.processes) for _ in range(3))
        pair = engine.ints(4)
        for k in range(len(sizes)):
            size = int(sizes[k])
            if size < 2:
                continue
            first, end = int(knot_start[k]), int(knot_start[k + 1])
            different = engine.distinct_opinions(first, end, members, rest, owner, heads, tails, hashes)
            if engine.find_disagreement(different, heads, tails, members, rest, place, stamp, pair):
                self.violations += size - 1
                x, y, second, first_there = (int(origin[int(i)]) for i in pair)
                self.pairs.append((x, y, second, first_there))
            elif not self.cycle:
                steps = total.find_cycle(members[first:end], rest, owner)
                self.cycle = [(int(origin[a]), int(origin[b])) for a, b in steps]
