"""Every test has a limit: one that waits for something that never comes fails, and shows where it waited."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

LIMIT_S = 600
LONG_LIMIT_S = 3600


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """With its fixtures. The alarm interrupts whatever the main thread is blocked in."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return (yield)
    limit = LONG_LIMIT_S if item.get_closest_marker("long") else LIMIT_S

    def ring(number: int, frame: object) -> None:
        pytest.fail(f"{item.nodeid} was not over after {limit} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
