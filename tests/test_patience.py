"""Limits of tests grow with the load."""

from __future__ import annotations

import pytest

from tests.patience import scaled


def test_a_loaded_machine_gets_more_time() -> None:
    assert scaled(60, load=1.5, processors=2) == 60
    assert scaled(60, load=20, processors=2) == 600


@pytest.mark.timeout(50)
def test_the_limit_of_a_test_is_the_longer_one(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("timeout")
    assert marker.args[0] >= 50
    assert len(list(request.node.iter_markers("timeout"))) == 2
