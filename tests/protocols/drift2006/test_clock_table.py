"""Tables of clocks, in one integer or in machine words, do the same as a plain loop over entries."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.protocols.drift2006.clock_table import NARROW, WIDE, Clock, ClockTable, Form
from precede.protocols.drift2006.fast.machine_clock_table import MachineClockTable
from precede.protocols.drift2006.seen import Seen
from precede.protocols.floods.stream import Stream

Make: TypeAlias = Callable[[list[Clock], Form], ClockTable]

CLOCK = st.tuples(st.integers(0, 2000), st.integers(0, 1_000_000))
CLOCKS = st.lists(CLOCK, min_size=1, max_size=12)

# A table of machine words is used where the package is compiled; the same text runs as plain Python too.
kinds = pytest.mark.parametrize("make", [ClockTable, MachineClockTable])
forms = pytest.mark.parametrize("form", [NARROW, WIDE])


def freshest(*clocks: Clock) -> Clock:
    return max(clocks, key=lambda clock: (clock[1], clock[0]))


@kinds
@forms
@given(st.data())
def test_a_merge_takes_the_fresher_entry_of_every_column(make: Make, form: Form, data: st.DataObject) -> None:
    timestamps = data.draw(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=12))
    same_size = st.lists(st.integers(0, 1_000_000), min_size=len(timestamps), max_size=len(timestamps))
    received = data.draw(st.lists(same_size, max_size=3))
    table = make([(7, timestamp) for timestamp in timestamps], form)
    rose = table.merge([form.pack([(7, timestamp) for timestamp in row]) for row in received])
    expected = [max(column) for column in zip(timestamps, *received, strict=True)]
    assert table.clocks() == [(7, timestamp) for timestamp in expected]
    assert rose is (expected != timestamps)
    assert table.version == int(expected != timestamps)


@kinds
@forms
@given(st.data())
def test_a_merge_of_one_table_tells_which_sequence_numbers_rose(
    make: Make, form: Form, data: st.DataObject
) -> None:
    own = data.draw(CLOCKS)
    received = data.draw(st.lists(st.sampled_from(own) | CLOCK, min_size=len(own), max_size=len(own)))
    expected = [freshest(a, b) for a, b in zip(own, received, strict=True)]
    risen = [(column, a) for column, (a, b) in enumerate(zip(own, expected, strict=True)) if a[0] != b[0]]
    table = make(own, form)
    if risen:
        assert table.merge([form.pack(received)]) is None
        assert table.clocks() == own
    assert table.merge_one(form.pack(received)) == risen
    assert table.clocks() == expected
    assert table.version == int(own != expected)


@kinds
@forms
@given(CLOCKS, st.integers(0, 1 << 40), st.integers(0, 12))
def test_columns_with_lower_timestamps_are_found(
    make: Make, form: Form, clocks: list[Clock], timestamp: int, likely: int
) -> None:
    timestamp = min(timestamp, 1_000_001) if timestamp % 2 else timestamp
    table = make(clocks, form)
    lower = [column for column, clock in enumerate(clocks) if clock[1] < timestamp]
    assert table.count_below(timestamp) == len(lower)
    assert table.first_below(timestamp, likely) == (likely if likely in lower else min(lower, default=-1))


@kinds
@forms
@given(CLOCKS, CLOCK, st.data())
def test_an_entry_is_put_in_only_if_it_is_fresher(
    make: Make, form: Form, clocks: list[Clock], clock: Clock, data: st.DataObject
) -> None:
    column = data.draw(st.integers(0, len(clocks) - 1))
    table = make(clocks, form)
    expected = freshest(clocks[column], clock)
    assert table.raise_to(column, *clock) is (expected != clocks[column])
    clocks[column] = expected
    assert table.clocks() == clocks
    assert table.get(column) == expected
    assert table.timestamp(column) == expected[1]


@kinds
@forms
def test_forged_guard_bits_are_ignored(make: Make, form: Form) -> None:
    table = make([(1, 5), (1, 5), (1, 5)], form)
    guard = b"\x80" + bytes(form.size - 1)
    assert table.merge([guard * 3]) is False
    assert table.clocks() == [(1, 5)] * 3
    assert form.clock_in(guard * 3, 2) == (0, 0)


def test_an_older_clock_of_a_source_is_news_while_its_freshest_is_not_usable() -> None:
    """The freshest clock names a message that is not here, so an older one with less is the best to use."""
    seen = Seen(Random(1), None, "fifo", False)
    seen.set_columns([Stream((0, 0)), Stream((1, 0))], [(0, 0), (0, 0)])

    def settle(clock: Clock) -> bool:
        seen.receive_table(NARROW.pack([(0, 0), clock]), seen.layout)
        return seen.settle()

    assert settle((1, 10))
    assert seen.usable_timestamp(1) == 0
    assert settle((0, 5))
    assert seen.usable_timestamp(1) == 5
    assert not settle((0, 4))
    assert seen.usable_timestamp(1) == 5
