"""`precede demo`: the whole pipeline on a bundled day of buses, from movement to a report."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from precede.cli.parameters import Option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from precede.lake.layout import Lake
    from precede.pipeline.sweeps.sweep import SweepSummary
    from precede.report.site import Built
    from precede.witness.verdict import Verdict

TRACE: Final = "bus-day"
RANGE_M: Final = 200.0
_NEEDED: Final = {"pyspark": "spark", "jinja2": "report", "resvg_py": "report"}
"""Modules without which the day of buses cannot run, and the extras that have them."""
EVENTS: Final = 20_000
"""The most events on a run's page; a small number keeps the site small."""


def command(
    out: Annotated[Path, Option(metavar="DIR", help="folder for the lake and the site")] = Path("demo-out"),
    small: Annotated[bool, Option(help="a chat and an office, in seconds, without Spark")] = False,
) -> int:
    """A day of buses: contacts on Spark, 36 verified runs, and a site with the results.

    Four protocols carry messages with three lifetimes over the same day, with three seeds each. Run the command
    again and finished steps are not repeated. Exit code 0: every run keeps the order its protocol promises.
    Without the extras spark and report, it shows what --small shows.

    \b
    Example:
      precede demo
      precede demo --small
    """
    missing = [extra for module, extra in _NEEDED.items() if find_spec(module) is None]
    if not (small or missing):
        return run_day(out)
    code = max(compare_chats(), compare_worlds())
    if not small:
        extras = ",".join(dict.fromkeys(["cli", *missing]))
        print(f"\nThe whole demo, a day of buses on Spark, needs more: pip install 'precede[{extras}]'")
    return code


def run_day(out: Path) -> int:
    """Run all steps from movement to pages, print the result of each, and return the exit code."""
    from precede.lake.layout import Lake
    from precede.pipeline.sessions.session import open_session

    began = time.monotonic()
    lake = Lake(out / "lake")
    print(
        "A day of sixty buses in a made-up town. Their radios reach 200 m; there is no other network. A message"
    )
    print("is discarded at the end of its lifetime. Does anybody see an answer before its question?\n")
    with step("1  the day"):
        segments = store_day(lake)
    print(f"   60 buses, {segments:,} straight segments of movement")
    copy_specifications(out)
    with open_session(None, (), "precede demo", light=True) as session:
        with step("2  contacts, on Spark"):
            print(f"   {find_contacts(lake, session):,} contacts, to the microsecond")
        with step("3  4 protocols x 3 lifetimes x 3 seeds, on Spark: simulated, verified, measured"):
            swept = run_sweep(lake, out / "buses.toml", session)
        with step("4  the same day without ordering, for contrast"):
            bare = run_sweep(lake, out / "without-order.toml", session)
    print("\n" + summary(lake, swept, bare))
    with step("5  the site"):
        site = write_site(lake, out / "site")
    print(f"   {site.pages} pages, {site.bytes / 1e6:.1f} MB, {time.monotonic() - began:.0f} s in all\n")
    precede = "precede" if shutil.which("precede") else sys.argv[0]  # in a clone: .venv/bin/precede
    line = f"{precede} sweep {out / 'buses.toml'} --lake {out / 'lake'}"
    print(f"To change it, edit {out / 'buses.toml'}, then: {line}")
    print(f"Open {site.front.absolute().as_uri()}")
    return 3 if swept.failed or bare.failed else 1 if swept.broken_promises else 0


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print a title before a step and its duration after it."""
    print(title, flush=True)
    began = time.monotonic()
    yield
    print(f"   done in {time.monotonic() - began:.1f} s", flush=True)


def store_day(lake: Lake) -> int:
    """Store the movement of the generated day in the lake; returns the number of segments."""
    from precede.pipeline.mobility.generated import store_mobility
    from precede.traces.city_bus import city_bus

    return store_mobility(lake, TRACE, city_bus(seed=1))


def copy_specifications(out: Path) -> None:
    for item in (files("precede.cli") / "day").iterdir():
        if item.name.endswith(".toml"):
            (out / item.name).write_text(item.read_text(encoding="utf-8"), encoding="utf-8")


def find_contacts(lake: Lake, session: SparkSession) -> int:
    from precede.cli.progress import working
    from precede.pipeline.mobility.contacts import compute_contacts

    with working("contacts", "slices") as progress:
        return compute_contacts(lake, TRACE, RANGE_M, session, progress=progress).contacts


def run_sweep(lake: Lake, spec: Path, session: SparkSession) -> SweepSummary:
    """Carry out a sweep and return its summary. A finished sweep is not repeated."""
    from precede.cli.progress import working
    from precede.experiments.grid import read_grid
    from precede.pipeline.sweeps.marks import SweepOptions
    from precede.pipeline.sweeps.sweep import sweep, swept_before

    grid = read_grid(spec, lake.location)
    options = SweepOptions(same_code=True)
    before = swept_before(lake, grid, options)
    if before is not None:
        return before
    with working("the sweep", "runs") as progress:
        return sweep(lake, grid, session, options, progress)


def summary(lake: Lake, swept: SweepSummary, unordered: SweepSummary) -> str:
    """Return the results as text: verdicts, and how many messages each protocol delivers for each lifetime."""
    from precede.lake.results import read_results

    results = read_results(lake)
    held = swept.verdicts["holds"]
    lines = [f"Verdicts: {held} of {swept.runs} runs keep the order that their protocol promises."]
    lines += [f"   violated: {run_id}" for run_id in swept.broken_promises]
    violations = sum(
        verdict["violations"] for verdict in results.verdicts.values() if verdict["promised"] == "none"
    )
    lines.append(f"Without ordering ({unordered.runs} run), causal order was violated {violations:,} times.\n")
    lines.append("Deliveries in a day (mean of three seeds), by lifetime:")
    lines += _delivered(results.groups("buses"))
    return "\n".join(lines)


def _delivered(groups: list[dict[str, Any]]) -> list[str]:
    """Return a table of mean deliveries as lines: a row for each protocol, a column for each lifetime."""
    import json

    lifetimes = ("5min", "20min", "1h")
    by_protocol: dict[str, dict[str, float]] = {}
    for row in groups:
        if row["measure"] == "deliveries":
            lifetime = json.loads(row["options"])["workload.lifetime"]
            by_protocol.setdefault(row["protocol"], {})[lifetime] = row["value"]
    lines = [f"   {'':<14}" + "".join(f"{lifetime:>10}" for lifetime in lifetimes)]
    for protocol, means in by_protocol.items():
        lines.append(f"   {protocol:<14}" + "".join(f"{means[lifetime]:>10,.0f}" for lifetime in lifetimes))
    return [
        *lines,
        "   A protocol that waits for ever for lost messages delivers few; a bounded wait delivers many more.",
    ]


def write_site(lake: Lake, out: Path) -> Built:
    from precede.cli.data.report import protocol_cards, stored_comparisons
    from precede.report.site import build_site
    from precede.reproduction.papers import find_papers

    papers = find_papers()
    stored = stored_comparisons(papers)
    return build_site(lake, out, protocol_cards(), papers, stored=stored, events=EVENTS)


def compare_chats() -> int:
    """Verify a chat's log, and a copy in which a phone shows messages on arrival. 0 if only that breaks."""
    from precede.witness.verify import verify

    verdicts = []
    with as_file(files("precede.cli") / "histories") as folder:
        for name in ("chat.csv", "chat-sabotaged.csv"):
            verdicts.append(verify(folder / name, "causal"))
        kept, sabotaged = verdicts
        print("Four people chat. Each phone logs the messages that it sends and shows, in its own order.")
        print("In the second log dora's phone shows messages in the order of arrival, not in causal order.\n")
        print(side_by_side(("in causal order", kept), ("sabotaged", sabotaged)))
        if sabotaged.first is not None:
            print(f"\nWhat went wrong:\n{sabotaged.first.story}")
        print("\nThe logs are plain CSV. Look at one, change it, verify it:")
        print(f"  precede verify {folder / 'chat-sabotaged.csv'}")
    return 0 if kept.holds and sabotaged.verdict == "violated" else 1


def compare_worlds() -> int:
    """Simulate one world with faults, with causal order and without. Return 0 if only the second breaks."""
    from precede.experiments.simulation import simulate

    print("\nNow eight nodes on a network that loses, duplicates and reorders packets; two of them crash.")
    print("The same world twice: with vector clocks, and with delivery on arrival.\n")
    ordered = simulate("small-office", "vector_clock", seed=7)
    arrival = simulate("small-office", "unordered", seed=7)
    kept, violated = ordered.verify(), arrival.verify("causal")
    print(side_by_side(("vector_clock", kept), ("unordered", violated)))
    for name, run in (("vector_clock", ordered), ("unordered", arrival)):
        measures = run.measures()
        print(
            f"  {name:<12}  {measures['broadcasts']} broadcasts, {measures['crashed']} crashes,"
            f" a message is {measures['age_us_mean'] / 1000:.0f} ms old when it is shown"
        )
    if violated.first is not None:
        print(f"\nThe first violation without ordering:\n{violated.first.story}")
    print("\nRun it yourself:  precede simulate small-office --protocol unordered --seed 7 --out out/office")
    print("                  precede verify out/office --order causal")
    return 0 if kept.holds and violated.verdict == "violated" else 1


def side_by_side(*titled: tuple[str, Verdict]) -> str:
    """Return verdicts as columns of text, each under its title."""
    columns = [
        [
            title,
            "-" * len(title),
            f"{verdict.order} order: {verdict.verdict}",
            f"{verdict.rows:,} rows, {verdict.deliveries_checked:,} deliveries",
            f"{verdict.violations:,} violation{'' if verdict.violations == 1 else 's'}",
        ]
        for title, verdict in titled
    ]
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  " + "    ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    )
