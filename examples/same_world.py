"""Compares protocols on the same worlds: what each delivers, after how long, and at what cost.

    python -m examples.same_world --lake lake --out out/same-world

Traces of real taxis and of a hospital are read from the folder PRECEDE_DATA (docs/guides/which-order.md names
their sources); without it those two worlds are left out. The other worlds are generated. You can kill the
program at any time and start it again: finished runs are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from precede.cli import main as precede
from precede.protocols import registry
from precede.report.figures import Curve, Figure, Point, write_figure
from precede.report.tables import Cell, Table, markdown, write_table

HERE = Path(__file__).parent / "same-world"
SWEEPS = ("same-contacts", "same-forever", "same-field", "same-network", "same-cells")
TRACES = {
    "hospital": ("sociopatterns_hospital/tij_hospital.dat.gz", "tij", None),
    "taxis": ("cabspotting_60cabs_1day/cabspotting_20080521_60cabs.csv.gz", "gps", "100"),
}
BEGIN, END = "<!-- same-world: begin -->", "<!-- same-world: end -->"
HEADER = (
    *("world", "protocol", "order", "verdict", "broadcasts", "delivered, %", "age, s", "wait, s"),
    *("control bytes a delivery", "entries at a node, at most"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lake", type=Path, default=Path("lake"))
    parser.add_argument("--out", type=Path, default=Path("out/same-world"))
    parser.add_argument("--master", default="local[*,4]", help="where Spark runs the sweeps")
    parser.add_argument("--only", choices=SWEEPS, action="append", help="one of the sweeps; may be repeated")
    parser.add_argument("--page", type=Path, help="also write the table between this page's marks")
    given = parser.parse_args(arguments)
    sweeps = given.only or list(SWEEPS)
    rows: list[list[Cell]] = []
    for sweep in sweeps:
        spec = _specification(sweep, given.lake)
        code = precede(["sweep", str(spec), "--lake", str(given.lake), "--master", given.master])
        if code == 3:
            return code
        rows += rows_of(given.lake, sweep)
    table = Table("Every protocol on the same worlds", HEADER, rows)
    write_table(table, given.out, "same-world")
    if given.page is not None:
        _write_page(table, given.page)
    for world in dict.fromkeys(str(row[0]) for row in rows):
        write_figure(_figure(world, [row for row in rows if row[0] == world]), given.out, f"same-world-{world}")
    print(f"Tables and figures in {given.out}")
    return 0


def _write_page(table: Table, page: Path) -> None:
    """Replace the table between the page's two marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page}: no marks {BEGIN} and {END}")
    page.write_text(f"{before}{begin}\n{markdown(table)}{end}{after}", encoding="utf-8")


def _specification(sweep: str, lake: Path) -> Path:
    """The sweep's file; for the contact worlds a copy that names only the traces that are available."""
    spec = HERE / f"{sweep}.toml"
    if sweep != "same-contacts":
        return spec
    missing = [name for name in TRACES if not _take(name, lake)]
    table = tomllib.loads(spec.read_text())["sweep"]
    table["scenario"] = [str(HERE / name) for name in table["scenario"] if Path(name).stem not in missing]
    made = lake / f"{sweep}.toml"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("[sweep]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()))
    return made


def _take(name: str, lake: Path) -> bool:
    """Ingest a trace unless the lake has it; returns whether the lake has it now."""
    file, form, reach = TRACES[name]
    if list((lake / "contacts").glob(f"{name}*.parquet")):
        return True
    source = Path(os.environ.get("PRECEDE_DATA", ".")) / file
    if not source.is_file():
        print(f"{name} is left out: no {file} in PRECEDE_DATA", file=sys.stderr)
        return False
    code = precede(["ingest", str(source), "--as", form, "--name", name, "--lake", str(lake)])
    if code == 0 and reach is not None:
        code = precede(["contacts", name, "--range", reach, "--lake", str(lake)])
    return code == 0


def rows_of(lake: Path, sweep: str) -> list[list[Cell]]:
    """One row for each world and protocol, with means over the seeds.

    "Delivered" is a share of the deliveries that `unordered` makes in the same world; where that cannot run, of
    every message at every other node.
    """
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for row in pq.read_table(lake / "measures" / f"{sweep}.parquet").to_pylist():
        if row["scope"] == "group":
            world = Path(row["scenario"]).stem
            groups.setdefault((world, row["protocol"]), {})[row["measure"]] = row["value"]
    verdicts = _verdicts(lake, sweep)
    return [
        [
            world,
            protocol,
            registry.find(protocol).order,
            verdicts[world, protocol],
            *_numbers(world, measures, groups),
        ]
        for (world, protocol), measures in groups.items()
    ]


def _numbers(
    world: str, measures: dict[str, float], groups: dict[tuple[str, str], dict[str, float]]
) -> list[Cell]:
    """The number cells of one row: broadcasts, delivered, age, wait, control bytes, entries."""
    others = measures["deliveries"] - measures["own_deliveries"]
    free = groups.get((world, "unordered"))
    hosts = measures["nodes"] - (10 if world == "cells" else 0)
    most = free["receptions"] if free else measures["broadcasts"] * (hosts - 1)
    sizes = [
        value
        for name, value in measures.items()
        if name.endswith("_size_peak") and not name.startswith("cache")
    ]
    return [
        round(measures["broadcasts"]),
        100 * others / most,
        measures["age_us_mean"] / 1e6 if others else None,
        measures["wait_us_mean"] / 1e6 if others else None,
        measures["control_bytes"] / others if others else None,
        sum(sizes),
    ]


def _verdicts(lake: Path, sweep: str) -> dict[tuple[str, str], str]:
    """The verdict over all seeds on the order that the protocol promises (causal if it promises none)."""
    runs = {row["run_id"]: row for row in pq.read_table(lake / "runs" / f"{sweep}.parquet").to_pylist()}
    verdicts: dict[tuple[str, str], str] = {}
    for row in pq.read_table(lake / "verdicts" / f"{sweep}.parquet").to_pylist():
        run = runs[row["run_id"]]
        key = Path(run["scenario"]).stem, run["protocol"]
        verdict = f"{row['order']} {row['verdict']}"
        verdicts[key] = verdict if verdicts.get(key, verdict) == verdict else f"{row['order']} violated"
    return verdicts


def _figure(world: str, rows: Sequence[Sequence[Cell]]) -> Figure:
    """Control bytes a delivery over the share delivered, one point a protocol."""
    curves = [
        Curve(str(row[1]), [Point(float(str(row[5])), float(str(row[8])))], joined=False)
        for row in rows
        if row[8] is not None
    ]
    return Figure(f"{world}: delivered and its price", "delivered, %", "control bytes a delivery", curves)


if __name__ == "__main__":
    sys.exit(main())
