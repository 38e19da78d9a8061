"""Settings of all tests: they judge what a test finds, never how fast the machine is."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.patience import patient

settings.register_profile("precede", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("precede")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lengthen the limit of a test, its own or the usual one, on a loaded machine."""
    marker = item.get_closest_marker("timeout")
    limit = marker.args[0] if marker is not None and marker.args else item.config.getoption("timeout")
    limit = float(limit if limit is not None else item.config.getini("timeout"))
    item.add_marker(pytest.mark.timeout(patient(limit)), append=False)
    return (yield)
