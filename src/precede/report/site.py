"""The site of a lake: static pages that open from a disk, without network, server or build step.

    build_site(Lake("lake"), Path("report"), cards, Path("papers"))      # then open report/index.html

All pages are in one folder, with `assets/` and `data/`. A page loads only files of this folder. Data are
scripts, because a page opened from a disk may not fetch files.
"""

import shutil
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from precede.lake.layout import Lake
from precede.lake.results import Results, Row, read_results
from precede.report.paper_pages import write_papers
from precede.report.protocol_pages import Card, write_protocols
from precede.report.run_pages import RunPages
from precede.report.sweep_pages import glance, run_table, write_sweep
from precede.report.tables import Cell, Table, html
from precede.report.trace_pages import write_traces
from precede.report.writing import SECTIONS, Pages

EVENTS: Final = 100_000
RUNS: Final = 200
_ROWS: Final = 10_000_000
"""Logs with more rows together than this are not all read: a page takes 0.65 µs of CPU time for each row."""
_ASSETS: Final = ("style.css", "page.js", "model.js", "diagram.js", "map.js", "run.js")
_EVIDENCE: Final = ("member", "what it did", "it is", "key")
_LIST: Final = "pages.txt"
"""Lists the pages of a report, so that the next report removes these and no other files."""


class Built(NamedTuple):
    """The result of `build_site`: the front page, and counts of the pages written."""

    front: Path
    pages: int
    bytes: int
    runs_left_out: int


def build_site(
    lake: Lake,
    out: Path,
    cards: Sequence[Card] = (),
    papers: Path | None = None,
    *,
    stored: Sequence[Row] = (),
    events: int = EVENTS,
    runs: int | None = None,
    evidence: Sequence[Sequence[Cell]] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Built:
    """Write the site of a lake into the folder `out`: at most `runs` runs, with at most `events` events each.

    If `runs` is None, as many as are soon written. `stored` has comparisons with papers that were measured
    elsewhere; the lake's own take their place. A row of `evidence` is member, deed, proof or hint, key.
    """
    results = read_results(lake)
    compared = {(row["paper"], row["claim"]) for row in results.comparisons}
    others = [row for row in stored if (row["paper"], row["claim"]) not in compared]
    comparisons = [*results.comparisons, *others]
    pages = fresh_folder(out)
    filled = {
        "sweeps": results.runs,
        "traces": results.lake.units("contacts"),
        "runs": results.runs,
        "papers": comparisons,
        "protocols": cards,
    }
    pages.sections = [section for section in SECTIONS if filled[section]]
    chosen = _chosen(results, runs)
    writer = RunPages(pages, results, events)
    for done, run in enumerate(chosen):
        if progress is not None:
            progress(done, len(chosen))
        writer.write(run)
    with_page = {run["run_id"] for run in chosen}
    sweeps = [write_sweep(pages, results, name, with_page) for name in results.sweeps()]
    paper_table = write_papers(pages, lake, comparisons, papers)
    traces = write_traces(pages, results)
    protocols = write_protocols(pages, results, cards, papers)
    pages.write(
        "index.html",
        "index.html",
        title="Ordered broadcast for networks that move"
        if not results.runs
        else "Promised and verified orders",
        summary=_summary(results),
        verdicts=html(glance(results)) if results.verdicts else "",
        evidence=html(Table("Who told two stories", _EVIDENCE, list(evidence))) if evidence else "",
        sweeps=sweeps,
        traces=html(traces) if traces.rows else "",
        papers=html(paper_table) if paper_table.rows else "",
        runs=html(run_table("All runs", results, results.runs, with_page)) if results.runs else "",
        protocols=html(protocols) if protocols.rows else "",
    )
    list_pages(pages)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Built(out / "index.html", len(pages.written), size, len(results.runs) - len(chosen))


def fresh_folder(out: Path) -> Pages:
    """Make the folder of a report, or remove from it what an earlier report wrote, and copy the assets."""
    out.mkdir(parents=True, exist_ok=True)
    listed = out / "assets" / _LIST
    if listed.is_file():
        for page in listed.read_text(encoding="utf-8").splitlines():
            (out / page).unlink(missing_ok=True)
        for folder in ("assets", "data"):
            shutil.rmtree(out / folder, ignore_errors=True)
    for folder in ("assets", "data"):
        (out / folder).mkdir(exist_ok=True)
    for name in _ASSETS:
        source = files("precede.report") / "assets" / name
        (out / "assets" / name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    return Pages(out)


def list_pages(pages: Pages) -> None:
    """List what was written, so that the next report in this folder removes it."""
    (pages.out / "assets" / _LIST).write_text("\n".join(pages.written) + "\n", encoding="utf-8")


def _chosen(results: Results, most: int | None) -> list[Row]:
    """Return the runs that get a page: at most `most`, or as many as `RUNS` and `_ROWS` allow.

    Runs that failed or whose order does not hold come first, then the first seeds of all groups.
    """

    def rank(run: Row) -> tuple[int, int]:
        verdict = results.verdicts.get(run["run_id"], {}).get("verdict", "holds")
        return 0 if run["status"] != "finished" or verdict != "holds" else 1, run["seed"]

    lake = results.lake
    logged = [run for run in results.runs if run["status"] != "finished" or lake.has("events", run["run_id"])]
    ranked = sorted(logged, key=rank)
    if most is not None:
        return ranked[:most]
    before = accumulate((run["rows"] or 0 for run in ranked), initial=0)
    return [run for run, rows in zip(ranked[:RUNS], before, strict=False) if rows < _ROWS]


def _summary(results: Results) -> str:
    """Return the results of the lake in one or two sentences."""
    if not results.runs:
        return "This lake has no runs yet."
    promised = [v for v in results.verdicts.values() if v["promised"] == v["order"]]
    kept = sum(1 for verdict in promised if verdict["verdict"] == "holds")
    deliveries = sum(verdict["deliveries_checked"] or 0 for verdict in results.verdicts.values())
    text = f"{len(results.runs):,} runs, {deliveries:,} deliveries checked: "
    text += f"{kept} of {len(promised)} verdicts hold." if promised else "no protocol here promises an order."
    free = [v for v in results.verdicts.values() if v["promised"] != v["order"]]
    broken = sum(verdict["violations"] or 0 for verdict in free)
    if broken:
        runs = "one run" if len(free) == 1 else f"{len(free)} runs"
        text += f" For contrast, {runs} without a promised order violated causal order {broken:,} times."
    return text
