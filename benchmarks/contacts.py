"""How fast contacts are found: `python -m benchmarks.contacts [--json] [--quick]`.

The exact kernel (every pass, to the microsecond, from straight segments) compared with DuckDB and Polars on
the same motion sampled every second: pairs in range per second by a join over cells, then runs of seconds. The
sampled version finds no pass between two samples and no crossing times, and its samples are given to it for
free. CPU seconds of this process with all its threads, minimum of interleaved rounds; ranges are 50 m. A crowd
of 10,000 is swept by the kernel alone in one process, and by the Spark job from lake to lake: CPU seconds of
all processes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.contact_worlds import walks, waypoints
from benchmarks.family import Watched
from benchmarks.measuring import interleaved
from precede.core.instants import SECOND
from precede.lake.layout import Lake
from precede.lake.schemas import SEGMENTS
from precede.pipeline.mobility.contacts import compute_contacts
from precede.pipeline.sessions.session import open_session
from precede.traces.intervals import Segments
from precede.traces.kernel import cut_time, find_contacts

RANGE_M = 50.0
HOUR_S = 3600
SIDE_500_M = 1700.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--quick", action="store_true", help="a sixth of the time, a tenth of the large crowd")
    options = parser.parse_args()
    results = run(options.quick)
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(quick: bool) -> dict[str, Any]:
    seconds = HOUR_S // 6 if quick else HOUR_S
    find_contacts(waypoints(50, 500.0, 60), RANGE_M)
    crowded = crowd(1000 if quick else 10_000, seconds)
    return rivals(seconds) | crowded


def rivals(seconds: int) -> dict[str, Any]:
    """Measures 500 and 2,000 nodes at the same density; the larger world also as samples, for the databases."""
    worlds = {n: waypoints(n, SIDE_500_M * (n / 500) ** 0.5, seconds) for n in (500, 2000)}
    samples = sampled(worlds[2000], seconds)
    found: dict[str, int] = {}

    def exact(nodes: int) -> None:
        found[f"contacts_{nodes}"] = len(find_contacts(worlds[nodes], RANGE_M).a)

    table = pl.DataFrame(samples)
    base = duckdb.connect()
    base.register("samples", table.to_arrow())

    def by_duckdb() -> None:
        found["contacts_2000_duckdb"] = base.execute(DUCKDB, [RANGE_M**2]).fetchall()[0][0]

    def by_polars() -> None:
        found["contacts_2000_polars"] = polars_contacts(table)

    contenders = {
        "500": lambda: exact(500),
        "2000": lambda: exact(2000),
        "duckdb": by_duckdb,
        "polars": by_polars,
    }
    cpu = interleaved(contenders)
    again = interleaved({name: contenders[name] for name in ("500", "2000")}, rounds=7)
    cpu |= {name: min(cpu[name], again[name]) for name in again}
    walls = {name: wall(run) for name, run in contenders.items() if name != "500"}
    assert found["contacts_2000_duckdb"] == found["contacts_2000_polars"]
    work = {n: len(worlds[n].node) + found[f"contacts_{n}"] for n in worlds}
    return {
        **{f"segments_{n}": len(world.node) for n, world in worlds.items()},
        **found,
        **{f"cpu_s_{name}": round(value, 3) for name, value in cpu.items()},
        **{f"wall_s_{name}": round(value, 3) for name, value in walls.items()},
        "ratio_duckdb_to_kernel_cpu": round(cpu["duckdb"] / cpu["2000"], 2),
        "ratio_polars_to_kernel_cpu": round(cpu["polars"] / cpu["2000"], 2),
        "ratio_duckdb_to_kernel_wall": round(walls["duckdb"] / walls["2000"], 2),
        "ratio_polars_to_kernel_wall": round(walls["polars"] / walls["2000"], 2),
        "ratio_growth_500_to_2000": round(cpu["2000"] / cpu["500"] / (work[2000] / work[500]), 3),
    }


def wall(run: Any) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def crowd(nodes: int, seconds: int) -> dict[str, Any]:
    """Measures the kernel alone: many pedestrians with a leg every ten seconds, in one process."""
    world = walks(nodes, 2300.0 * (nodes / 10_000) ** 0.5, seconds)
    pieces = 0
    began = time.process_time()
    for begin, end in cut_time(world, 12):
        pieces += len(find_contacts(world, 2 * RANGE_M, begin, end).a)
    alone = time.process_time() - began
    on_spark = crowd_on_spark(world)
    return {
        "crowd_nodes": nodes,
        "crowd_segments": len(world.node),
        "crowd_pieces_of_contacts": pieces,
        "crowd_cpu_s": round(alone, 2),
        **on_spark,
        "ratio_crowd_spark_to_kernel_cpu": round(on_spark["crowd_spark_cpu_s"] / alone, 2),
    }


def crowd_on_spark(world: Segments) -> dict[str, Any]:
    """Measures the Spark job on the same pedestrians, on two cores of a warm session; CPU of all processes."""
    with tempfile.TemporaryDirectory() as folder, open_session("local[2,4]") as session:
        lake = Lake(folder)
        write_segments(lake, "small", waypoints(50, 500.0, 60))
        write_segments(lake, "crowd", world)
        compute_contacts(lake, "small", RANGE_M, session, slices=4)
        with Watched() as watched:
            found = compute_contacts(lake, "crowd", 2 * RANGE_M, session)
    return {
        "crowd_contacts": found.contacts,
        "crowd_slices": found.slices,
        "crowd_spark_cpu_s": round(watched.cpu_s, 2),
        "crowd_spark_wall_s": round(watched.wall_s, 2),
        "crowd_spark_peak_gib": round(watched.peak_bytes / 2**30, 2),
    }


def write_segments(lake: Lake, trace: str, world: Segments) -> None:
    """A generated world as the table `segments`, in order of time, as `precede ingest` writes it."""
    order = np.argsort(world.t0_us, kind="stable")
    names = pa.array([f"n{node}" for node in range(int(world.node.max()) + 1)])
    columns = [names.take(pa.array(world.node[order])), *(pa.array(column[order]) for column in world[1:])]
    table = pa.table([pa.repeat(trace, len(order)), *columns], schema=SEGMENTS.arrow())
    with lake.job(f"make-{trace}").hold() as job:
        job.write("segments", trace, table)


def sampled(world: Segments, seconds: int) -> dict[str, np.ndarray]:
    """The positions of all nodes at every whole second."""
    parts = []
    for t in range(seconds + 1):
        at = t * SECOND
        here = (world.t0_us <= at) & ((at < world.t1_us) | ((at == world.t1_us) & (t == seconds)))
        part = (at - world.t0_us[here]) / (world.t1_us[here] - world.t0_us[here])
        x = world.x0[here] + (world.x1[here] - world.x0[here]) * part
        y = world.y0[here] + (world.y1[here] - world.y0[here]) * part
        parts.append((np.full(len(x), t, dtype=np.int32), world.node[here].astype(np.int32), x, y))
    t, node, x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return {"t": t, "node": node, "x": x, "y": y}


DUCKDB = """
with cells as (
  select t, node, x, y, cast(floor(x / 50) as int) cx, cast(floor(y / 50) as int) cy from samples
), near as (
  select t, node, x, y, cx + dx as cx, cy + dy as cy
  from cells, (values (-1), (0), (1)) as a(dx), (values (-1), (0), (1)) as b(dy)
), pairs as (
  select p.t as t, p.node as a, q.node as b from cells p join near q
  on p.t = q.t and p.cx = q.cx and p.cy = q.cy
  where p.node < q.node and (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) <= ?
), runs as (
  select a, b, t - row_number() over (partition by a, b order by t) as run, t from pairs
), contacts as (
  select a, b, min(t) as start, max(t) as stop from runs group by a, b, run
)
select count(*), sum(stop - start) from contacts
"""


def polars_contacts(samples: pl.DataFrame) -> int:
    cells = samples.lazy().with_columns(
        cx=(pl.col("x") / 50).floor().cast(pl.Int32), cy=(pl.col("y") / 50).floor().cast(pl.Int32)
    )
    around = pl.LazyFrame({"dx": [-1, -1, -1, 0, 0, 0, 1, 1, 1], "dy": [-1, 0, 1] * 3}).cast(pl.Int32)
    near = cells.join(around, how="cross").select(
        "t", "node", "x", "y", cx=pl.col("cx") + pl.col("dx"), cy=pl.col("cy") + pl.col("dy")
    )
    distance = (pl.col("x") - pl.col("x_right")) ** 2 + (pl.col("y") - pl.col("y_right")) ** 2
    pairs = (
        cells.join(near, on=["t", "cx", "cy"])
        .filter((pl.col("node") < pl.col("node_right")) & (distance <= RANGE_M**2))
        .select("t", a="node", b="node_right")
        .sort("a", "b", "t")
    )
    new = (
        (pl.col("a") != pl.col("a").shift(1))
        | (pl.col("b") != pl.col("b").shift(1))
        | (pl.col("t") != pl.col("t").shift(1) + 1)
    ).fill_null(True)
    contacts = (
        pairs.with_columns(run=new.cum_sum())
        .group_by("run")
        .agg(pl.first("a"), pl.first("b"), start=pl.min("t"), stop=pl.max("t"))
    )
    return int(contacts.collect().height)


if __name__ == "__main__":
    main()
