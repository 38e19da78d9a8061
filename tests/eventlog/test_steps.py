"""The `step` column is each row's number among the rows of its node, over all blocks, however it is counted."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

import numpy as np
import pytest

from precede.eventlog.machine_steps import MachineStepCounts
from precede.eventlog.steps import StepCounts

FORMS: Final = (StepCounts, MachineStepCounts)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nodes", [1, 2, 30, 65_536, 65_537, 100_000])
def test_steps_go_on_from_block_to_block(form: type[StepCounts], nodes: int) -> None:
    random = Random(nodes)
    counts, reference = form(nodes), Counter[int]()
    for rows in (1, 2, 500, 3_000):
        chosen = [random.randrange(nodes) for _ in range(rows)]
        block = [node for node in chosen for _ in range(random.randrange(1, 4))]  # runs of rows of one node
        expected = []
        for node in block:
            expected.append(reference[node])
            reference[node] += 1
        assert counts.count(np.array(block, np.int32)).tolist() == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_node_continues_from_the_step_of_an_earlier_log(form: type[StepCounts]) -> None:
    counts = form(3)
    counts.continue_from(1, 1 << 40)
    assert counts.count(np.array([0, 1, 1, 2, 0], np.int32)).tolist() == [0, 1 << 40, (1 << 40) + 1, 0, 1]
