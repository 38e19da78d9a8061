"""The measures of a run in the format of The ONE's `MessageStatsReport`, to be compared line by line.

Times are seconds, a median is the upper one of two in the middle, and values have four decimals, as there. A
message to several nodes is created once and delivered at each of them; `delivery_prob` is our delivery ratio.
Nobody answers here, so the lines about responses are empty. `started` and `aborted` are NaN where messages
were sent to all neighbours at once.
"""

from collections.abc import Mapping
from math import isnan, nan
from typing import Final

import numpy as np

from precede.core.instants import SECOND
from precede.measures.columns import Integers
from precede.measures.statistics import Measures, Number

_COUNTS: Final = {
    "created": "broadcasts",
    "started": "transfers_started",
    "relayed": "relayed",
    "aborted": "transfers_aborted",
    "dropped": "copies_dropped",
    "removed": "copies_removed",
}


def one_stats(scenario: str, measures: Measures, samples: Mapping[str, Integers]) -> str:
    """Return the report of one run. `samples` are those of `EventMeasures`."""
    ages, hops = np.sort(samples["age_us"]), np.sort(samples["hop_count"])
    times = np.sort(samples["buffer_time_us"])
    lines = [
        f"Message stats for scenario {scenario}",
        f"sim_time: {_decimal((measures['end_us'] or 0) / SECOND)}",
        *(f"{name}: {_whole(measures.get(measure))}" for name, measure in _COUNTS.items()),
        f"delivered: {ages.size}",
        f"delivery_prob: {_decimal(measures['delivery_ratio'] or 0.0)}",
        "response_prob: 0.0000",
        f"overhead_ratio: {_decimal(measures.get('overhead_ratio'))}",
        f"latency_avg: {_mean(ages, SECOND)}",
        f"latency_med: {_decimal(_middle(ages) / SECOND)}",
        f"hopcount_avg: {_mean(hops)}",
        f"hopcount_med: {int(_middle(hops)) if hops.size else 0}",
        f"buffertime_avg: {_mean(times, SECOND)}",
        f"buffertime_med: {_decimal(_middle(times) / SECOND)}",
        "rtt_avg: NaN",
        "rtt_med: NaN",
    ]
    return "\n".join(lines) + "\n"


def _middle(values: Integers) -> float:
    return float(values[values.size // 2]) if values.size else nan


def _mean(values: Integers, unit: int = 1) -> str:
    return _decimal(float(values.mean()) / unit if values.size else nan)


def _whole(value: Number) -> str:
    return "NaN" if value is None else str(int(value))


def _decimal(value: Number) -> str:
    return "NaN" if value is None or isnan(value) else f"{value:.4f}"
