"""Sets of sources compared with plain integers, also where they are machine words (vcube2018)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from precede.protocols.vcube2018.prepared import new_row, new_set, new_share
from precede.protocols.vcube2018.sources import Mask, Share
from precede.protocols.vcube2018.topology import live_mask, responsibilities

SOURCES = st.one_of(st.sampled_from([0, 62, 63, 64, 127, 128, 191]), st.integers(0, 199))
MASKS = st.sets(SOURCES, max_size=60).map(live_mask)


def highest(mask: Mask) -> int:
    return int(mask.bit_length()) - 1


@given(MASKS, st.lists(SOURCES, max_size=20))
def test_sources_are_added_and_removed(mask: Mask, sources: list[int]) -> None:
    changed = new_set(mask)
    for source in sources:
        assert changed.has(source) == bool(mask >> source & 1)
        if changed.has(source):
            changed.remove(source)
        else:
            changed.add(source)
        mask ^= 1 << source
        assert (changed.mask(), changed.size) == (mask, mask.bit_count())


@given(MASKS, MASKS, SOURCES)
def test_a_source_is_taken_if_nothing_else_of_the_row_is_in_the_set(mask: Mask, row: Mask, source: int) -> None:
    row |= 1 << source
    taken = new_set(mask)
    assert taken.take(source, new_row(1, row)) == (mask & row == 1 << source)
    assert taken.mask() == (mask ^ 1 << source if mask & row == 1 << source else mask)


@given(MASKS, MASKS, MASKS, MASKS, st.integers(0, 70))
def test_the_highest_common_source(mask: Mask, row: Mask, other: Mask, share: Mask, shift: int) -> None:
    assert new_set(mask).highest(new_row(1, row)) == highest(mask & row)
    in_share = new_set(mask).highest_beside(new_row(1, row), new_set(other), new_share(share, shift))
    assert in_share == highest(mask & row & ~other & share << shift)
    without_other = new_set(mask).highest_beside(new_row(1, row), None, new_share(share, shift))
    assert without_other == highest(mask & row & share << shift)


@given(st.integers(0, 255), MASKS, MASKS, st.integers(1, 8))
def test_a_share_with_a_period_is_that_of_its_mask(node: int, mask: Mask, row: Mask, cluster: int) -> None:
    share, shift = responsibilities(node, (1 << 256) - 1)[cluster - 1]
    periodic: Share = new_share(share, shift, 1 << cluster)
    found = new_set(mask).highest_beside(new_row(1, row), None, periodic)
    assert found == highest(mask & row & share << shift)
