"""One run in this process, with its event log in memory: `precede.simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.frames import Library, as_frame
from precede.experiments.measuring import Measured, measured_part
from precede.experiments.run import carry_out
from precede.experiments.scenario import read_scenario
from precede.measures.energy import Energy
from precede.measures.events import measure_events
from precede.protocols.options import written_options
from precede.witness.verdict import Order, Verdict, read_order
from precede.witness.verify import verify


class Simulation:
    """The result of one run: `events` (the event log) and `gauges` are Arrow tables.

    `order` is the order that the protocol promises; `run_id` identifies the run by its settings and its seed.

    >>> import precede
    >>> run = precede.simulate("small-office", "fifo", seed=7)
    >>> run.order, run.verify().verdict
    ('fifo', 'holds')
    >>> run.verify("causal").verdict
    'violated'
    >>> run.measures()["broadcasts"], run.frame("pandas")["node"].nunique()
    (375, 8)
    """

    def __init__(
        self, events: pa.Table, gauges: pa.Table, order: str, run_id: str, measured: Measured | None = None
    ) -> None:
        self.events = events
        self.gauges = gauges
        self.order = order
        self.run_id = run_id
        self._measured = measured or Measured(None, Energy())

    def verify(self, order: Order | None = None) -> Verdict:
        """Check an order: by default the one that the protocol promises, or fifo if it promises none."""
        return verify(self.events, order or ("fifo" if self.order == "none" else read_order(self.order)))

    def measures(self) -> Mapping[str, Any]:
        """Measure the run: broadcasts, deliveries, transit, wait and age, packets, bytes and more, by name.

        Messages of its warm-up and cool-down are not measured.
        """
        return measure_events(self.events.to_batches(), *self._measured)

    def frame(self, library: Library = "pandas", rows: Literal["events", "gauges"] = "events") -> Any:
        """Return the event log or the gauges as a frame of pandas, Polars or Arrow.

        Raises BadInput for another library or other rows.
        """
        if rows not in ("events", "gauges"):
            raise BadInput(f"rows: expected events or gauges, got {rows!r}")
        return as_frame(self.events if rows == "events" else self.gauges, library)

    def __repr__(self) -> str:
        return f"<Simulation {self.run_id}: {self.events.num_rows:,} rows, order {self.order}>"


def simulate(
    scenario: str | PathLike[str],
    protocol: str | None = None,
    seed: int | None = None,
    *,
    options: Mapping[str, object] | Struct | None = None,
    settings: Mapping[str, object] | None = None,
) -> Simulation:
    """Run a protocol in a simulated network, in this process.

    * `scenario`: the name of a built-in scenario ("small-office", "city-bus", ...) or a TOML file.
    * `protocol`: the name of a protocol (`precede protocols` lists them); by default the scenario's own.
    * `seed`: the same scenario, protocol and seed give the same event log, byte by byte.
    * `options`: options of the protocol, as a mapping or as the protocol's own options struct.
    * `settings`: keys of the scenario with other values, as `--set` takes them (docs/reference/scenario.md).

    Raises BadInput if the scenario, the protocol, an option or a setting is unknown or wrong.

    >>> import precede
    >>> run = precede.simulate("small-office", "vector_clock", seed=7, settings={"loss": 0.3})
    >>> run.verify().verdict
    'holds'
    """
    if not isinstance(scenario, (str, PathLike)):
        raise BadInput(f"scenario: expected a built-in name or a TOML file, got {scenario!r}")
    chosen = written_options(options)
    run = read_scenario(str(scenario), protocol, seed, {**(settings or {}), **chosen})
    for key in chosen:
        if key not in run.options:
            raise BadInput(f"options: {run.protocol} has no option {key!r} (scenario keys go into settings=)")
    sink = TableSink()
    outcome = carry_out(run, sink)
    measured = measured_part(run, outcome.end_us)
    return Simulation(sink.events(), sink.gauges(), outcome.order, outcome.run_id, measured)
