"""What one day of guidec2021 went through, for Figures 3, 4, 6, 8, 9 and 11: stays, delays, registries.

The paper draws one day of one town; so do we, with the first day of town a. All times are in seconds.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.core.instants import SECOND
from precede.experiments.worlds.kinds import BuiltWorld
from precede.reproduction.guidec2021.measures import ONE_BUS, TWENTY_MINUTES, read_delays, stays_of_five_minutes

TRANSIT_CELLS: Final = 60
WAIT_CELLS: Final = 30
CELLS_PER_TENFOLD: Final = 6
SHORTEST_WAIT_S: Final = 0.1
"""A grid over transit and wait; a dot for each cell that has a message looks like a dot for each message.

Few messages wait for long on buses, so their waits are on a logarithmic axis: six cells from 0.1 to 1 s, as
many from 1 to 10 s, and so on. Shorter waits are not on it.
"""

ENTERS: Final = (3600 + 49 * 60) * SECOND
"""Node N777 of Figure 11 "enters the network around 01h49'" and stays for five minutes."""

REGISTRIES: Final = {"causal_barrier": "value", "pending": "peak", "co_delivered": "value"}
"""Messages wait for seconds, so that samples miss them: of pending ones the peak since the last sample."""

Columns = Mapping[str, list[float]]


def read_series(log: pa.Table, gauges: pa.Table, built: BuiltWorld) -> dict[str, Columns]:
    """Return all series of a day."""
    delays = _delays(log, logarithmic=ONE_BUS in built.names)
    return {"stays": _stays(built), "delays": delays, "registries": _registries(gauges, built)}


def _stays(built: BuiltWorld) -> Columns:
    """Return when nodes enter and leave, in the order in which they enter: all buses, people of 20 minutes."""
    stays = sorted((stay.enter, stay.leave) for stay in built.presence if stay.leave is not None)
    if ONE_BUS not in built.names:
        stays = [stay for stay in stays if stay[0] < stays[0][0] + TWENTY_MINUTES]
    enters, leaves = zip(*stays, strict=True)
    return {"enter_s": [at // SECOND for at in enters], "leave_s": [at // SECOND for at in leaves]}


def _delays(log: pa.Table, logarithmic: bool) -> Columns:
    """Return the middles of all cells that have a delivered message, ordered by transit."""
    delays = read_delays(log)
    shown = delays.wait >= (SHORTEST_WAIT_S if logarithmic else 0)
    transit, wait = delays.delivered_transit[shown], delays.wait[shown]
    if not wait.size:
        return {"transit_s": [], "wait_s": []}
    width = float(transit.max()) / TRANSIT_CELLS
    height = float(wait.max()) / WAIT_CELLS
    across = np.minimum(transit / width, TRANSIT_CELLS - 1).astype(np.int64)
    cell = np.log10(wait / SHORTEST_WAIT_S) * CELLS_PER_TENFOLD if logarithmic else wait / (height or 1.0)
    up = cell.astype(np.int64) if logarithmic else np.minimum(cell, WAIT_CELLS - 1).astype(np.int64)
    rows = int(up.max()) + 1
    taken = np.unique(across * rows + up)
    middle = taken % rows + 0.5
    waits = SHORTEST_WAIT_S * 10 ** (middle / CELLS_PER_TENFOLD) if logarithmic else middle * height
    return {"transit_s": _rounded((taken // rows + 0.5) * width), "wait_s": _rounded(waits)}


def _registries(gauges: pa.Table, built: BuiltWorld) -> Columns:
    """Return the registries of bus L01-1, or of the person who stays five minutes and enters nearest to 1h49'.

    Times count from when the node enters.
    """
    stays = [stay for stay in built.presence if built.names[stay.node] == ONE_BUS]
    stay = stays[0] if stays else min(stays_of_five_minutes(built), key=lambda one: abs(one.enter - ENTERS))
    own = gauges.filter(pc.equal(gauges["node"].cast(pa.string()), built.names[stay.node]))
    name = own["name"].cast(pa.string())
    columns: dict[str, list[float]] = {}
    for registry, column in REGISTRIES.items():
        rows = own.filter(pc.equal(name, registry)).sort_by("at_us")
        columns["at_s"] = [(at - stay.enter) // SECOND for at in rows["at_us"].to_pylist()]
        columns[registry] = rows[column].to_pylist()
    return columns


def _rounded(values: Any) -> list[float]:
    """Return values with the three digits that a picture shows."""
    return [float(f"{value:.3g}") for value in values]
