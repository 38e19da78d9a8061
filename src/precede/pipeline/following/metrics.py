"""Counters of a follower, as a text file that Prometheus reads (its text format, version 0.0.4).

The file `metrics.prom` in the checkpoint is replaced after each batch. Point the textfile collector of
node_exporter at it, or serve it with any web server. The counters go on after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from precede.pipeline.following.standings import Standing


class Totals(Struct):
    """What is counted besides the standings of runs. `lag_s` is the age of the oldest row of the last batch."""

    batches: int = 0
    rejects: int = 0
    lag_s: float = 0.0


def metrics_text(totals: Totals, runs: Sequence[Standing], state_bytes: int) -> str:
    """Return the metrics of a follower as text.

    >>> print(metrics_text(Totals(batches=3), [], 0).splitlines()[2])
    precede_follow_batches_total 3
    """
    kinds: dict[str, int] = {}
    for run in runs:
        for kind, count in run.counts.items():
            kinds[kind] = kinds.get(kind, 0) + count
    violations: dict[str, float] = {f'{{kind="{kind}"}}': count for kind, count in sorted(kinds.items())} or {
        "": 0
    }
    unknown = sum(bool(run.conflicts) for run in runs)
    metrics: list[tuple[str, str, str, dict[str, float]]] = [
        ("precede_follow_batches_total", "counter", "batches that are done", {"": totals.batches}),
        ("precede_follow_rows_total", "counter", "rows of the log", {"": sum(run.rows for run in runs)}),
        (
            "precede_follow_deliveries_total",
            "counter",
            "deliveries that were judged",
            {"": sum(run.deliveries for run in runs)},
        ),
        ("precede_follow_violations_total", "counter", "violations of order or integrity", violations),
        ("precede_follow_rejects_total", "counter", "messages that are no rows", {"": totals.rejects}),
        ("precede_follow_runs", "gauge", "runs seen so far", {"": len(runs)}),
        ("precede_follow_runs_in_doubt", "gauge", "runs with rows that cannot be judged", {"": unknown}),
        (
            "precede_follow_rows_waiting",
            "gauge",
            "rows that wait for others",
            {"": sum(run.held + run.parked for run in runs)},
        ),
        (
            "precede_follow_lag_seconds",
            "gauge",
            "age of the oldest row of the last batch",
            {"": round(totals.lag_s, 3)},
        ),
        ("precede_follow_state_bytes", "gauge", "size of the stored state", {"": state_bytes}),
    ]
    lines = []
    for name, kind, meaning, values in metrics:
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{label} {value}" for label, value in values.items()]
    return "\n".join(lines) + "\n"
