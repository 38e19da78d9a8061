"""Spark judges generated histories as the second witness does, an order for each of many runs."""

from __future__ import annotations

from random import Random

import pytest

import precede.pipeline
from tests.witness.any_history import draw
from tests.witness.test_second_witness import OF_DELIVERY, as_one_log, expected_as_part, shown


@pytest.mark.spark
@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(250, 10_250), marks=pytest.mark.long)])
def test_spark_judges_like_the_second_witness(session, seeds):
    """All histories as one log, an order for each `run_id`."""
    drawn = {f"r{seed}": draw(Random(seed)) for seed in seeds}
    table = as_one_log(drawn)
    for order in OF_DELIVERY:
        frame = precede.pipeline.verify(session.createDataFrame(table), order, by="run_id")
        found = {row["run_id"]: row for row in frame.toArrow().to_pylist()}
        assert set(found) == set(drawn)
        for run, one in drawn.items():
            expected = expected_as_part(one, order)
            note = f"{run}, {order}: {found[run]['verdict']}\n{shown(one)}"
            assert found[run]["verdict"] == expected.verdict, note
            assert expected.rings or dict(found[run]["counts"]) == expected.counts, note
