"""Random draws come in blocks, one number at a time, whatever their size."""

from __future__ import annotations

import numpy as np

from precede.sim.draws import MOST_AT_ONCE, Draws


def test_draws_give_the_numbers_of_their_blocks_in_order():
    """Blocks of small numbers and blocks with one that needs more than 32 bits take turns."""
    generator, blocks = np.random.default_rng(1), []

    def block(count: int) -> np.ndarray:
        numbers = generator.integers(-(1 << 31), 1 << 31, count)
        if len(blocks) % 2:
            numbers[-1] = (1 << 31, -(1 << 31) - 1, 1 << 62)[len(blocks) // 2 % 3]
        blocks.append(numbers)
        return numbers

    draws = Draws(block)
    drawn = [draws.next() for _ in range(8 * MOST_AT_ONCE)]
    assert drawn == np.concatenate(blocks).tolist()[: len(drawn)]
    assert [len(one) for one in blocks[:4]] == [64, 256, 1024, 1024]
    assert len(blocks) >= 7
