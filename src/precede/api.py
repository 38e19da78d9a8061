"""What an application imports, lazily, from `precede`.

May import: protocols, runtime, experiments, verify, core
"""

from __future__ import annotations

from precede.experiments.simulation import Simulation, simulate
from precede.verify.witness import verify

__all__ = ["Simulation", "simulate", "verify"]
