"""What of a run is measured: the keys `warmup`, `cooldown` and `energy` of its scenario.

Messages that are broadcast in the warm-up, or in the cool-down before the end of the run, are simulated and not
measured. The end is the world time when the run ended.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.experiments.keys import read_table
from precede.experiments.run import RUN_FILE, Outcome, Run, carry_out_into
from precede.experiments.run_table import RunTable
from precede.measures.energy import Energy
from precede.measures.events import EventMeasures, measure_events
from precede.measures.gauges import GaugeMeasures, measure_gauges
from precede.measures.messages import Window
from precede.measures.statistics import Measures
from precede.sim.world import World


class _Described(Struct):
    """The part of `run.json` that says what is measured. An emulation has neither of them."""

    run: Run | None = None
    outcome: Outcome | None = None


class Measured(NamedTuple):
    """The span of time of a run to measure (None: all of it), and how much energy its radios use."""

    window: Window | None
    energy: Energy


def measured_part(run: Run, end: Instant) -> Measured:
    """Return what of a run that ended at `end` is measured. Raise `BadInput` if that is nothing."""
    run_keys = read_table(RunTable, run.table())
    window = Window.of_run(run.warmup, run.cooldown, end)
    if window is not None and window.begin >= window.end:
        where = f"{run.scenario}: " if run.scenario else ""
        raise BadInput(f"{where}[run]: warmup and cooldown leave nothing of {end / 1e6:g} s to measure")
    return Measured(window, Energy(**run_keys.energy))


def part_of_folder(folder: Path) -> Measured:
    """Return what of the run in a folder is measured; everything if it has no `run.json` of a simulation."""
    described = folder / RUN_FILE
    if not described.is_file():
        return Measured(None, Energy())
    try:
        facts = msgspec.json.decode(described.read_bytes(), type=_Described)
    except msgspec.DecodeError as error:
        raise BadInput(f"{described}: not the description of a run ({error})") from None
    if facts.run is None or facts.outcome is None:
        return Measured(None, Energy())
    return measured_part(facts.run, facts.outcome.end_us)


def measure_folder(folder: Path) -> Measures:
    """Return every measure of the run in a folder: of its event log, and of its gauges if it has some."""
    window, energy = part_of_folder(folder)
    measures = measure_events(folder / "events.parquet", window, energy)
    gauges = folder / "gauges.parquet"
    return measures | measure_gauges(gauges, window) if gauges.exists() else measures


class MeasuringSink:
    """Measures the rows of a run while they are written, so that they need not be read again."""

    def __init__(self, energy: Energy) -> None:
        self._events, self._gauges = EventMeasures(None, energy), GaugeMeasures(None)

    def write_events(self, block: pa.RecordBatch) -> None:
        self._events.add(block)

    def write_gauges(self, block: pa.RecordBatch) -> None:
        self._gauges.add(block)

    def measures(self) -> Measures:
        """Return the measures of all rows; call it once."""
        return self._events.measures() | self._gauges.measures()


def measuring_sink(run: Run) -> MeasuringSink | None:
    """Return a sink that measures a run; None if what is measured is known only at its end."""
    return None if run.warmup or run.cooldown else MeasuringSink(measured_part(run, 0).energy)


def carry_out_measured(
    run: Run, folder: Path, watch: Callable[[World, Instant], None] | None = None
) -> tuple[Outcome, Measures]:
    """Carry out a run into a folder and measure it.

    When a cool-down begins is known only at the end: then the rows are read again. Garbage is not collected,
    because the world stays until the end: walking it while it is built finds nothing. Afterwards its objects
    count as old, so that no collection begins with them.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        sink = measuring_sink(run)
        outcome = carry_out_into(run, folder, watch=watch, also=sink)
        return outcome, measure_folder(folder) if sink is None else sink.measures()
    finally:
        if collecting:
            gc.freeze()
            gc.unfreeze()
            gc.enable()
