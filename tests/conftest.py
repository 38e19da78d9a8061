"""Settings of all tests: Hypothesis judges what a test finds, never how fast the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("precede", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("precede")
