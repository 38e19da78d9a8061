"""Everything that runs on Spark; no other package imports pyspark.

Spark distributes the work: a task receives a number, reads its own input and writes its own file through
`precede.lake`. Bulk rows do not pass through the JVM. Every job can be killed at any time and run again.
`precede.pipeline.verify(df, order="causal", by=["topic"])` verifies a DataFrame of your own. In reading order:
`sessions`, `mobility`, `sweeps`, `judging`, `following`, `reproduction`.

May import: core, eventlog, traces, experiments, reproduction, witness, measures, lake, audit
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "verify":
        from precede.pipeline.judging.frames import verify

        return verify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
