"""A run's log as its page carries it: the rows about messages, from the beginning, up to a number of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precede.report.packing import Ints, pack, places, planes

SHOWN: Final = ("started", "crashed", "left", "broadcast", "received", "delivered", "discarded")
"""The kinds of rows a page carries, in the order of their codes in `model.js`."""
NO_MESSAGE: Final = 0xFFFFFFFF
_STRETCH: Final = 5
_COLUMNS: Final = (
    *("node", "incarnation", "step", "at_us", "kind"),
    *("message_source", "message_incarnation", "message_number"),
)


class Log(NamedTuple):
    """Rows in columns, in order of time; at one instant as they were written, causes first."""

    nodes: list[str]
    node: Ints
    step: Ints
    at_us: Ints
    kind: Ints
    message: Ints
    messages: list[tuple[int, int, int]]
    rows: int
    """How many rows about messages the whole run has."""

    def name(self, message: int) -> str:
        source, life, number = self.messages[message]
        return f"{self.nodes[source]}{chr(39) + str(life) if life else ''}:{number}"


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts `n2` before `n10`."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def read_log(path: Path, limit: int, reach: tuple[str, int] | None = None) -> Log:
    """The first `limit` rows about messages; more, up to five times as many, to reach a node's step."""
    table = pq.read_table(path, columns=list(_COLUMNS), filters=pc.field("kind").isin(SHOWN))
    table = table.take(
        pc.sort_indices(_with_place(table), sort_keys=[("at_us", "ascending"), ("_", "ascending")])
    )
    rows = table.num_rows
    table = table.slice(0, max(limit, min(_place_of(table, reach), _STRETCH * limit)))
    names = pc.unique(
        pa.concat_arrays([_strings(table["node"]), _strings(table["message_source"]).drop_null()])
    )
    nodes = sorted(names.to_pylist(), key=natural)
    source = places(table["message_source"], nodes)
    life, number = (_numbers(table[f"message_{name}"]) for name in ("incarnation", "number"))
    triples, message = np.unique(np.stack([source, life, number]), axis=1, return_inverse=True)
    known = triples[0] >= 0
    shift = int((~known).sum())
    codes: Ints = np.where(message.ravel() >= shift, message.ravel() - shift, NO_MESSAGE)
    return Log(
        nodes=nodes,
        node=places(table["node"], nodes),
        step=table["step"].to_numpy().astype(np.int64),
        at_us=table["at_us"].to_numpy().astype(np.int64),
        kind=places(table["kind"], SHOWN),
        message=codes,
        messages=[(int(s), int(i), int(n)) for s, i, n in triples[:, known].T],
        rows=rows,
    )


def _with_place(table: pa.Table) -> pa.Table:
    return table.append_column("_", pa.array(np.arange(table.num_rows)))


def _place_of(table: pa.Table, reach: tuple[str, int] | None) -> int:
    """How many rows it takes to see a node's step; 0 where there is none."""
    if reach is None:
        return 0
    node, step = reach
    found = pc.and_(pc.equal(_strings(table["node"]), node), pc.equal(table["step"], step))
    return int(pc.index(found, True).as_py()) + 1


def _strings(column: Any) -> Any:
    return pc.cast(column.combine_chunks(), pa.string())


def _numbers(column: Any) -> Ints:
    numbers: Ints = column.fill_null(-1).to_numpy().astype(np.int64)
    return numbers


def page_data(log: Log, run_id: str, violations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What `model.js` reads. Times are kept to a thousandth of a second in a run of more than an hour."""
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
