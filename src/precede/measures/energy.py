"""The energy that radios use, by a linear model: power while a node is up and scans, energy for each byte.

The default is a Bluetooth LE radio of 16 mW (5.4 mA at 3 V) that scans a tenth of the time and moves a byte in
8 µs (1 Mbit/s). Connection set-up, the processor and wired links cost nothing in this model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precede.core.instants import SECOND, Instant
from precede.measures.delivery import Presence
from precede.measures.messages import Window
from precede.measures.statistics import Measures


class Energy(NamedTuple):
    """What scanning takes in watts, and what a byte takes to transmit and to receive in joules."""

    scan: float = 1.6e-3
    transmit: float = 1.3e-7
    receive: float = 1.3e-7


def measure_energy(
    energy: Energy,
    presence: Presence,
    nodes: Sequence[int],
    window: Window,
    end: Instant,
    bytes_sent: int,
    bytes_received: int | None,
) -> Measures:
    """Return the energy of all nodes together. `bytes_received` is None if the log has no such rows."""
    until = min(window.end, end)
    stays = presence.stays(nodes)
    up = int(np.maximum(0, np.minimum(stays.end, until) - np.maximum(stays.begin, window.begin)).sum())
    scan, transmit = energy.scan * up / SECOND, energy.transmit * bytes_sent
    measures: Measures = {"energy_scan_j": scan, "energy_transmit_j": transmit}
    if bytes_received is not None:
        receive = energy.receive * bytes_received
        measures |= {"energy_receive_j": receive, "energy_j": scan + transmit + receive}
    return measures
