"""Tables of clocks in one integer do the same as a plain loop over entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.protocols.drift2006.clock_table import NARROW, WIDE, ClockTable, Form

CLOCKS = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 1_000_000)), min_size=1, max_size=12)


@pytest.mark.parametrize("form", [NARROW, WIDE])
@given(st.data())
def test_a_merge_takes_the_fresher_entry_of_every_column(form: Form, data: st.DataObject) -> None:
    own = data.draw(CLOCKS)
    received = data.draw(
        st.lists(st.sampled_from(own) | CLOCKS.map(lambda c: c[0]), min_size=len(own), max_size=len(own))
    )
    table = ClockTable(own, form)
    table.merge([form.pack(received)])
    assert table.clocks() == [
        max(a, b, key=lambda clock: (clock[1], clock[0])) for a, b in zip(own, received, strict=True)
    ]


@given(CLOCKS, st.integers(0, 1_000_001))
def test_below_gives_the_columns_with_lower_timestamps(clocks: list[tuple[int, int]], timestamp: int) -> None:
    table = ClockTable(clocks)
    columns = table.columns_of(table.below(timestamp))
    assert columns == [column for column, clock in enumerate(clocks) if clock[1] < timestamp]
