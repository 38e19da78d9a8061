"""Compares the rules that apps sort by on the same worlds: what a user saw, at five degrees of clock skew.

    python -m examples.same_screens --lake lake --out out/same-screens

Real traces are read from the folder PRECEDE_DATA (docs/guides/rules-of-apps.md names their sources); a world
whose trace is missing is left out. You can kill the program and start it again: finished runs are kept in
`results.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import precede
from examples import mobiclique
from precede.cli import main as command
from precede.report.figures import Curve, Figure, Point, svg, write_figure
from precede.report.tables import Cell, Table, markdown, write_table

HERE = Path(__file__).parent / "same-world"
WORLDS = {
    "buses": ("2h", "40min", 60),
    "pedestrians": ("6min", "5min", 500),
    "hospital": ("24h", "4h", 75),
    "taxis": ("4h", "2h", 60),
    "mobiclique": ("24h", "24h", 76),
}
"""The worlds: mean time between two questions of a node, lifetime, and number of nodes, at most."""
TALK = """[workload]
poisson = "{every}"
lifetime = "{lifetime}"
size = 200
replies = {replies}
reply_after = "exponential(60)"

"""
"""People ask now and then, and half of the questions and answers get an answer, a minute later on average."""
TRACES = {
    "hospital": ("sociopatterns_hospital/tij_hospital.dat.gz", "tij"),
    "taxis": ("cabspotting_60cabs_1day/cabspotting_20080521_60cabs.csv.gz", "gps"),
    "mobiclique": ("sigcomm2009_mobiclique", "contacts"),
}
SKEWS = ("0s", "1s", "30s", "120s", "1h")
SECONDS = {"0s": 0, "1s": 1, "30s": 30, "120s": 120, "1h": 3600}
RULES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "arrival": ("arrival", {}),
    "timestamp": ("timestamp", {}),
    "lamport": ("lamport", {}),
    "sds": ("sds", {}),
    "sds, wait 10min": ("sds", {"wait": "10min"}),
    "hash_dag": ("hash_dag", {}),
    "delta_causal": ("delta_causal", {}),
}
BEGIN, END = "<!-- same-screens: begin -->", "<!-- same-screens: end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lake", type=Path, default=Path("lake"))
    parser.add_argument("--out", type=Path, default=Path("out/same-screens"))
    parser.add_argument("--world", choices=WORLDS, action="append", help="one of the worlds; may be repeated")
    parser.add_argument("--page", type=Path, help="also write the tables between this page's marks")
    parser.add_argument("--figure", type=Path, help="also write the figure to this SVG file")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    store = given.out / "results.json"
    results: dict[str, dict[str, Any]] = json.loads(store.read_text()) if store.is_file() else {}
    worlds = [world for world in given.world or WORLDS if world not in TRACES or take(world, given.lake)]
    for world in worlds:
        for skew in SKEWS:
            for rule in RULES:
                key = f"{world}/{skew}/{rule}"
                if key not in results:
                    results[key] = run(world, skew, rule, given.lake)
                    store.write_text(json.dumps(results, indent=1))
                    print(key, results[key], flush=True)
    tables = [table_at_rest(results, worlds), table_by_skew(results, worlds)]
    for number, table in enumerate(tables, 1):
        write_table(table, given.out, f"same-screens-{number}")
    figure = figure_of(results, worlds)
    write_figure(figure, given.out, "same-screens")
    if given.figure is not None:
        given.figure.write_text(svg(figure), encoding="utf-8")
    if given.page is not None:
        write_page("\n".join(map(markdown, tables)), given.page)
    print(f"Tables and figure in {given.out}")
    return 0


def take(world: str, lake: Path) -> bool:
    """Ingest a trace unless the lake has it; returns whether the lake has it now."""
    name, form = TRACES[world]
    if list((lake / "contacts").glob(f"{world}*.parquet")):
        return True
    source = Path(os.environ.get("PRECEDE_DATA", ".")) / name
    if not source.exists():
        print(f"{world} is left out: no {name} in PRECEDE_DATA", file=sys.stderr)
        return False
    if world == "mobiclique":
        lake.mkdir(parents=True, exist_ok=True)
        links = lake / "mobiclique-links.csv"
        mobiclique.main([str(source), str(links)])
        source = links
    code = command(["ingest", str(source), "--as", form, "--name", world, "--lake", str(lake)])
    if code == 0 and world == "taxis":
        code = command(["contacts", world, "--range", "100", "--lake", str(lake)])
    return code == 0


def run(world: str, skew: str, rule: str, lake: Path) -> dict[str, Any]:
    """Run a rule in a world. Every clock is ahead or behind by an exponential draw with the mean `skew`."""
    protocol, options = RULES[rule]
    if protocol == "delta_causal":
        options = {"skew": f"{max(60, 8 * SECONDS[skew])}s"}
    scenario = lake / f"screens-{world}.toml"
    world_part, _, rest = (HERE / f"{world}.toml").read_text(encoding="utf-8").partition("[workload]")
    every, lifetime, nodes = WORLDS[world]
    talk = TALK.format(every=every, lifetime=lifetime, replies=0.5 / nodes)
    lake.mkdir(parents=True, exist_ok=True)
    scenario.write_text(f"{world_part}{talk}[run]{rest.partition('[run]')[2]}", encoding="utf-8")
    settings: dict[str, Any] = {}
    if world in TRACES:
        settings["world.lake"] = str(lake)
    if SECONDS[skew]:
        settings["faults.skew"] = f"exponential({SECONDS[skew]})"
    result = precede.simulate(scenario, protocol, seed=1, options=options, settings=settings)
    verdict = result.verify("display")
    measures = result.measures()
    return {
        "verdict": verdict.verdict,
        "broadcasts": measures["broadcasts"],
        "shown": measures["deliveries"] - measures["own_deliveries"],
        "answer_first": verdict.counts.get("answer_first", 0),
        "answer_above": verdict.counts.get("answer_above", 0),
        "revisions": verdict.revisions,
        "moved": verdict.moved,
        "wait_s": (measures["wait_us_mean"] or 0) / 1e6,
        "control_bytes": measures["control_bytes"],
    }


def table_at_rest(results: Mapping[str, Mapping[str, Any]], worlds: Sequence[str]) -> Table:
    """What each rule shows if all clocks agree."""
    header = (
        *("world", "rule", "display order", "broadcasts", "shown, %", "answer first, %", "answer above, %"),
        *("revisions, %", "moved by one", "wait, s", "control bytes a message shown"),
    )
    lines: list[list[Cell]] = []
    for world in worlds:
        most = results[f"{world}/0s/arrival"]["shown"]
        for rule in RULES:
            one = results[f"{world}/0s/{rule}"]
            shown = one["shown"]
            lines.append(
                [
                    *(world, rule, one["verdict"], one["broadcasts"], 100 * shown / most),
                    *(percent(one, "answer_first"), percent(one, "answer_above"), percent(one, "revisions")),
                    one["moved"] / one["revisions"] if one["revisions"] else None,
                    one["wait_s"],
                    one["control_bytes"] / shown,
                ]
            )
    return Table("The rules on the same worlds, all clocks right", header, lines)


def table_by_skew(results: Mapping[str, Mapping[str, Any]], worlds: Sequence[str]) -> Table:
    """What changes with the clocks: answers above their questions, and messages shown."""
    header = ("world", "rule", "of the messages", *(f"skew {skew}" for skew in SKEWS))
    lines: list[list[Cell]] = []
    for world in worlds:
        most = results[f"{world}/0s/arrival"]["shown"]
        for rule in RULES:
            at = [results[f"{world}/{skew}/{rule}"] for skew in SKEWS]
            if rule in ("arrival", "timestamp"):
                lines.append([world, rule, "answer above, %", *(percent(one, "answer_above") for one in at)])
            lines.append([world, rule, "shown, %", *(100 * one["shown"] / most for one in at)])
    return Table("The rules on the same worlds, by clock skew", header, lines)


def percent(one: Mapping[str, Any], name: str) -> float:
    """A count as a share of the messages of others that were shown."""
    return 100 * one[name] / one["shown"] if one["shown"] else 0.0


def figure_of(results: Mapping[str, Mapping[str, Any]], worlds: Sequence[str]) -> Figure:
    """Answers that `timestamp` shows above their questions, over the skew."""
    curves = [
        Curve(
            world,
            [
                Point(place, percent(results[f"{world}/{skew}/timestamp"], "answer_above"))
                for place, skew in enumerate(SKEWS)
            ],
        )
        for world in worlds
    ]
    return Figure(
        "Sorted by the sender's clock: answers above their questions",
        "mean error of a clock",
        "messages, %",
        curves,
        categories=SKEWS,
    )


def write_page(text: str, page: Path) -> None:
    """Replace the tables between the page's two marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page}: no marks {BEGIN} and {END}")
    page.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
