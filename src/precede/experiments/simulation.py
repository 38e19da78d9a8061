"""A run in memory: what `precede.simulate` gives an application, a notebook or a test."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import carry_out
from precede.experiments.scenario import read_scenario
from precede.measures.events import measure_events
from precede.witness.verdict import Verdict
from precede.witness.verify import verify


class Simulation:
    """What came out of one run: the event log and the gauges as Arrow tables, and its measures.

    `verify()` asks the witness about the order the protocol promises; `to_pandas()` is the log as a DataFrame.
    """

    def __init__(self, events: pa.Table, gauges: pa.Table, order: str, run_id: str) -> None:
        self.events = events
        self.gauges = gauges
        self.order = order
        self.run_id = run_id

    def verify(self, order: str | None = None) -> Verdict:
        return verify(self.events, order or (self.order if self.order != "none" else "fifo"))

    def measures(self) -> Mapping[str, Any]:
        return measure_events(self.events.to_batches())

    def to_pandas(self) -> Any:
        return self.events.to_pandas()

    def __repr__(self) -> str:
        return f"<Simulation {self.run_id}: {self.events.num_rows:,} rows, order {self.order}>"


def simulate(
    scenario: str | PathLike[str], protocol: str | None = None, seed: int | None = None, **settings: Any
) -> Simulation:
    """One run in this process, its rows in memory.

    `scenario` is a built-in name or a TOML file; settings are protocol options or scenario keys, as `--set`
    takes them: `simulate("small-office", "fifo", seed=7, loss=0.3)`.
    """
    if not isinstance(scenario, (str, PathLike)):
        raise BadInput(f"a scenario is a built-in name or a TOML file, not {scenario!r}")
    run = read_scenario(str(scenario), protocol, seed, settings)
    sink = TableSink()
    outcome = carry_out(run, sink)
    return Simulation(sink.events(), sink.gauges(), outcome.order, outcome.run_id)
