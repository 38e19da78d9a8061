"""The log of a run as its page carries it: events about messages from the beginning, up to a limit."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.lake.columns import distinct_names, indices
from precede.lake.layout import Lake
from precede.measures.messages import Window
from precede.report.figures import Curve, Figure, Point
from precede.report.packing import Ints, pack, planes
from precede.report.units import unit_of

SHOWN: Final = ("started", "crashed", "left", "broadcast", "received", "delivered", "discarded")
"""The kinds of events that a page carries, in the order of their codes in `model.js`."""
NO_MESSAGE: Final = 0xFFFFFFFF
_STRETCH: Final = 5
_SAMPLES: Final = 80
_COLUMNS: Final = (
    *("node", "incarnation", "step", "at_us", "kind"),
    *("message_source", "message_incarnation", "message_number"),
)


class Log(NamedTuple):
    """Events as columns, sorted by time; `message` is an index into `messages`, a source one into `nodes`."""

    nodes: list[str]
    node: Ints
    step: Ints
    at_us: Ints
    kind: Ints
    message: Ints
    messages: list[tuple[int, int, int]]
    rows: int
    """The number of events about messages in the whole run."""
    ages: Ints
    """The ages of all messages of the whole run when other nodes than their sources delivered them, sorted."""

    def name(self, message: int) -> str:
        """Return a message as the verifier writes it: `source:number`, or `source'incarnation:number`."""
        source, incarnation, number = self.messages[message]
        return f"{self.nodes[source]}{chr(39) + str(incarnation) if incarnation else ''}:{number}"


def read_log(
    lake: Lake,
    run_id: str,
    limit: int,
    include: tuple[str, int] | None = None,
    window: Window | None = None,
) -> Log:
    """Read the first `limit` events about messages of a run, and the ages of all messages of a window.

    The result may be five times longer, to contain the step `include` of a node.
    """
    table = lake.read("events", run_id, _COLUMNS, pc.field("kind").isin(SHOWN))
    keys = [("at_us", "ascending"), ("_", "ascending")]
    numbered = table.append_column("_", pa.array(np.arange(table.num_rows)))
    table = table.take(pc.sort_indices(numbered, sort_keys=keys))
    rows, ages = table.num_rows, delivery_ages(table, window)
    table = table.slice(0, max(limit, min(_rows_until(table, include), _STRETCH * limit)))
    nodes = distinct_names(table["node"], table["message_source"])
    source = indices(table["message_source"], nodes)
    incarnation, number = (_numbers(table[f"message_{name}"]) for name in ("incarnation", "number"))
    keys_of = message_keys(source, incarnation, number)
    known = np.flatnonzero(source >= 0)
    _, first, message = np.unique(keys_of[known], return_index=True, return_inverse=True)
    codes: Ints = np.full(source.size, NO_MESSAGE, np.int64)
    codes[known] = message
    triples = np.stack([source, incarnation, number])[:, known[first]]
    return Log(
        nodes=nodes,
        node=indices(table["node"], nodes),
        step=table["step"].to_numpy().astype(np.int64),
        at_us=table["at_us"].to_numpy().astype(np.int64),
        kind=indices(table["kind"], SHOWN),
        message=codes,
        messages=[(s, i, n) for s, i, n in triples.T.tolist()],
        rows=rows,
        ages=ages,
    )


def message_keys(source: Ints, incarnation: Ints, number: Ints) -> Ints:
    """Return one number for each message id, in the order of source, incarnation and number."""
    lives, numbers = int(incarnation.max(initial=0)) + 1, int(number.max(initial=0)) + 1
    return (source * lives + incarnation) * numbers + number


def delivery_ages(table: pa.Table, window: Window | None = None) -> Ints:
    """Return the ages of all deliveries at other nodes of messages in a window, in microseconds, sorted."""
    kind = indices(table["kind"], SHOWN)
    names = distinct_names(table["node"], table["message_source"])
    source, at = indices(table["message_source"], names), table["at_us"].to_numpy()
    incarnation, number = (_numbers(table[f"message_{name}"]) for name in ("incarnation", "number"))
    key = message_keys(source, incarnation, number)
    measured = window or Window()
    inside = (at >= measured.begin) & (at < measured.end)
    born = np.flatnonzero((kind == SHOWN.index("broadcast")) & inside)
    born = born[np.argsort(key[born], kind="stable")]
    elsewhere = indices(table["node"], names) != source
    delivered = np.flatnonzero((kind == SHOWN.index("delivered")) & elsewhere)
    if not len(born) or not len(delivered):
        return NO_AGES
    place = np.searchsorted(key[born], key[delivered]).clip(0, len(born) - 1)
    known = key[born][place] == key[delivered]
    ages: Ints = np.sort((at[delivered] - at[born[place]])[known])
    return ages


NO_AGES: Final[Ints] = np.empty(0, dtype=np.int64)


def latency_figure(
    scenario: str, groups: Mapping[str, Sequence[tuple[Ints, Mapping[str, float]]]]
) -> Figure | None:
    """Draw the share of expected deliveries over the time since the broadcast, a curve for each group of runs.

    A run is the ages of its deliveries and its measures; a curve ends at the delivery ratio.
    """
    pooled = {
        name: np.sort(np.concatenate([ages for ages, _ in runs] or [NO_AGES])) for name, runs in groups.items()
    }
    longest = max((int(ages[-1]) for ages in pooled.values() if len(ages)), default=0)
    unit = unit_of("us", longest)
    if not longest or unit is None:
        return None
    curves = []
    for name, ages in pooled.items():
        expected = sum(measures.get("expected_deliveries", len(own)) for own, measures in groups[name])
        places = (
            np.unique(np.linspace(0, len(ages) - 1, _SAMPLES).round().astype(np.int64)) if len(ages) else ()
        )
        points = [Point(float(ages[k]) / unit.size, (int(k) + 1) / max(1.0, expected)) for k in places]
        curves.append(Curve(name, points, marked=False))
    title = "Delivered within a time" + (f": {scenario}" if scenario else "")
    return Figure(title, f"time since the broadcast, {unit.name}", "share of expected deliveries", curves)


def _rows_until(table: pa.Table, include: tuple[str, int] | None) -> int:
    """Return the number of rows up to and including a node's step; 0 if there is none."""
    if include is None:
        return 0
    node, step = include
    matches = pc.and_(pc.equal(table["node"].cast(pa.string()), node), pc.equal(table["step"], step))
    return int(pc.index(matches, True).as_py()) + 1


def _numbers(column: Any) -> Ints:
    numbers: Ints = column.fill_null(-1).to_numpy().astype(np.int64)
    return numbers


def page_data(log: Log, run_id: str, violations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the data for `model.js`; times are in milliseconds if the run exceeds an hour, else in us."""
    count = len(log.at_us)
    end = int(log.at_us[-1]) if count else 0
    begin = min(0, int(log.at_us[0])) if count else 0
    unit = 1000 if end - begin > 3_600_000_000 else 1
    ticks = (log.at_us - begin) // unit
    gaps: Ints = np.diff(ticks, prepend=0)
    parts = (
        planes(gaps, 5),
        planes(log.node, 2),
        planes(log.kind, 1),
        planes(log.message, 4),
        planes(log.step, 4),
    )
    return {
        "id": run_id,
        "nodes": log.nodes,
        "messages": log.messages,
        "events": count,
        "of": log.rows,
        "begin": begin,
        "end": end,
        "unit": unit,
        "violations": [
            {key: row[key] for key in ("number", "kind", "node", "step", "message", "other")}
            for row in violations
        ],
        "packed": pack(parts),
    }
