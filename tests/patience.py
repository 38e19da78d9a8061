"""Wall-clock limits of tests, which grow with the load of the machine: a busy machine is no failure."""

from __future__ import annotations

import os


def patient(seconds: float) -> float:
    """Return a limit that fits the load of this machine now."""
    return scaled(seconds, os.getloadavg()[0], os.cpu_count() or 1)


def scaled(seconds: float, load: float, processors: int) -> float:
    """Return a limit, longer by the factor by which runnable processes outnumber the processors."""
    return seconds * max(1.0, load / processors)
