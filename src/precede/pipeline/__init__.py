"""Spark, and nowhere else: session, schemas, ingest, contacts, sweeps, verdicts, measures.

`precede.pipeline.verify(df, order="causal", by=["topic"])` is the witness on a DataFrame of yours.

May import: core, eventlog, traces, experiments, reproduction, witness, measures, lake
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "verify":
        from precede.pipeline.judging.witness import verify

        return verify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
