"""Sets of sources compared with plain integers, also where they are machine words (vcube2018)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.core.compiling import is_compiled
from precede.protocols.vcube2018 import machine_sources
from precede.protocols.vcube2018.machine_sources import MachineRow, MachineShare, MachineSourceSet
from precede.protocols.vcube2018.sources import Mask, Row, Share, SourceSet
from precede.protocols.vcube2018.topology import live_mask, responsibilities


class Kind(NamedTuple):
    """The classes of rows, sets and shares that belong together."""

    new_row: Any
    new_set: Any
    new_share: Any


INTEGERS: Final = Kind(Row, SourceSet, Share)
MACHINE_WORDS: Final = Kind(MachineRow, MachineSourceSet, MachineShare)
SIGNS: Final = () if is_compiled(machine_sources) else (63, 127, 191)
"""The sources whose bit is the sign of a word. Only compiled code computes with words that overflow."""
SOURCES = st.one_of(st.sampled_from([0, 62, 63, 64, 127, 128, 191]), st.integers(0, 199)).filter(
    lambda source: source not in SIGNS
)
MASKS = st.sets(SOURCES, max_size=60).map(live_mask)
each_kind = pytest.mark.parametrize("kind", [INTEGERS, MACHINE_WORDS], ids=["integers", "machine words"])


def highest(mask: Mask) -> int:
    return int(mask.bit_length()) - 1


@each_kind
@given(MASKS, st.lists(SOURCES, max_size=20))
def test_sources_are_added_and_removed(kind: Kind, mask: Mask, sources: list[int]) -> None:
    changed = kind.new_set(mask)
    for source in sources:
        assert changed.has(source) == bool(mask >> source & 1)
        if changed.has(source):
            changed.remove(source)
        else:
            changed.add(source)
        mask ^= 1 << source
        assert (changed.mask(), changed.size) == (mask, mask.bit_count())


@each_kind
@given(MASKS, MASKS, SOURCES)
def test_a_source_is_taken_if_nothing_else_of_the_row_is_in_the_set(
    kind: Kind, mask: Mask, row: Mask, source: int
) -> None:
    row |= 1 << source
    taken = kind.new_set(mask)
    assert taken.take(source, kind.new_row(1, row)) == (mask & row == 1 << source)
    assert taken.mask() == (mask ^ 1 << source if mask & row == 1 << source else mask)


@each_kind
@given(MASKS, MASKS, MASKS, MASKS, st.integers(0, 70))
def test_the_highest_common_source(
    kind: Kind, mask: Mask, row: Mask, other: Mask, share: Mask, shift: int
) -> None:
    assert kind.new_set(mask).highest(kind.new_row(1, row)) == highest(mask & row)
    in_share = kind.new_set(mask).highest_beside(
        kind.new_row(1, row), kind.new_set(other), kind.new_share(share, shift)
    )
    assert in_share == highest(mask & row & ~other & share << shift)
    without_other = kind.new_set(mask).highest_beside(kind.new_row(1, row), None, kind.new_share(share, shift))
    assert without_other == highest(mask & row & share << shift)


@each_kind
@given(st.integers(0, 255), MASKS, MASKS, st.integers(1, 8))
def test_a_share_with_a_period_is_that_of_its_mask(
    kind: Kind, node: int, mask: Mask, row: Mask, cluster: int
) -> None:
    share, shift = responsibilities(node, (1 << 256) - 1)[cluster - 1]
    periodic: Share = kind.new_share(share, shift, 1 << cluster)
    found = kind.new_set(mask).highest_beside(kind.new_row(1, row), None, periodic)
    assert found == highest(mask & row & share << shift)
