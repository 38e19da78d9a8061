"""`precede reproduce`: runs a paper's experiments, verifies every run, compares the results with the paper."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from precede.cli.data.spark import (
    ConfOption,
    HereOption,
    LakeOption,
    MasterOption,
    SameCodeOption,
    by_other_code,
    session_for,
)
from precede.cli.parameters import Argument, Option
from precede.cli.progress import working
from precede.core.errors import BadInput
from precede.core.settings import nearest
from precede.reproduction.papers import find_papers

if TYPE_CHECKING:
    from precede.reproduction.judging import Comparison
    from precede.reproduction.request import Reproduction, Request

OutOption = Annotated[
    Path | None, Option(metavar="DIR", help="tables and figures; default LAKE/exhibits/PAPER-SCALE")
]
StoreOption = Annotated[bool, Option("--store", help="also put the measures into the paper's results.json")]


def command(
    paper: Annotated[
        str, Argument(metavar="[PAPER[/EXHIBIT]]", help="prs1997, prs1997/figure4, or all")
    ] = "all",
    scale: Annotated[
        str | None,
        Option(help="run: quick (minutes) or paper (the paper's sizes, hours); default: show stored results"),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="print one JSON object")] = False,
    lake: LakeOption = "lake",
    out: OutOption = None,
    store: StoreOption = False,
    pages: Annotated[
        Path | None, Option(metavar="DIR", help="write stored results into DIR/PAPER.md, no simulation")
    ] = None,
    check: Annotated[
        bool, Option("--check", help="rerun a part of the stored results and say what agrees")
    ] = False,
    minutes: Annotated[float, Option(min=0.01, help="CPU minutes that --check may take")] = 10.0,
    papers: Annotated[Path | None, Option(metavar="DIR", help="claims; default: papers")] = None,
    with_trace: Annotated[
        str | None,
        Option("--with", metavar="ostermalm_001_1=FILE", help="guidec2021: the paper's own pedestrians"),
    ] = None,
    same_code: SameCodeOption = False,
    here: HereOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> int:
    """Compare a paper's claims with measured results: stored ones, or with --scale those of runs made now.

    Each claim is reproduced (the whole 95 % interval is within the tolerance), close, open (more seeds could
    decide), not reproduced (with the reason we found), withheld (our copy of the text does not show the value),
    or answered at the paper's scale only. With --scale every run is verified, and finished runs are not
    repeated: kill the command at any time and type the same line again. Runs that another version of this
    package left in the lake are repeated. Exit code 1: a claim is missed, a run violated its order, or a rerun
    disagrees. 3: some runs failed.

    \b
    Examples:
      precede reproduce prs1997
      precede reproduce vcube2018/table1 --scale paper --lake lake
      precede reproduce all --pages docs/papers
      precede reproduce --check --minutes 2
    """
    requests = read_requests(paper, scale, find_papers(papers), same_code)
    if with_trace is not None:
        requests = [request_with_trace(requests, with_trace, lake, store)]
    if check:
        return _check(requests, minutes)
    if scale is None:
        return _show_stored(requests, out, pages, as_json)
    if pages is not None:
        raise BadInput("--pages shows stored results: leave out --scale (and use --store first)")
    return _run(requests, paper, lake, out, store, as_json, _session(here, master, conf, f"reproduce {paper}"))


def _session(here: bool, master: str | None, conf: list[str] | None, name: str) -> AbstractContextManager[Any]:
    """Return a Spark session to enter, or None to enter if the runs are carried out here."""
    if here and (master or conf):
        raise BadInput("--here is without Spark: it takes no --master and no --conf")
    return nullcontext() if here else session_for(master, conf, name)


def _show_stored(requests: list[Request], out: Path | None, pages: Path | None, as_json: bool) -> int:
    """Judge stored results, print them, and write tables, figures and pages where asked."""
    from precede.cli.evidence.exhibits import write_exhibits
    from precede.cli.evidence.paper_text import write_page
    from precede.reproduction.claims import experiments_of
    from precede.reproduction.request import REASONS
    from precede.reproduction.results import read_results, stored_reproduction

    shown = []
    for request in requests:
        results = read_results(request.folder)
        if results is None and len(requests) > 1:
            print(f"{request.key}: no stored results", file=sys.stderr)
            continue
        if results is None:
            raise BadInput(
                f"no stored results of {request.key} "
                f"(measure them: precede reproduce {request.key} --scale quick --store)"
            )
        result = stored_reproduction(request, results)
        shown.append(result)
        if out is not None:
            write_exhibits(result, out / request.name)
        if pages is not None:
            of_reasons = structs.replace(request, exhibit=REASONS)
            named = experiments_of(of_reasons.claims().claim)
            is_stored = any(point.experiment in named for point in results.points)
            evidence = stored_reproduction(of_reasons, results) if is_stored else None
            write_page(result, evidence, results, pages / f"{request.key}.md")
    if as_json:
        print(json.dumps([as_plain(result) for result in shown], indent=2))
    elif pages is not None:
        print(f"Wrote {len(shown)} pages in {pages} from stored results")
    else:
        for result in shown:
            print("\n".join(describe(result, out, None)))
    return 0 if pages is not None else exit_code(shown)


def _check(requests: list[Request], minutes: float) -> int:
    """Rerun the cheapest stored units of every experiment within the budget; 1 if a measure differs."""
    from precede.reproduction.checking import choose, rerun, summary
    from precede.reproduction.results import read_results

    agrees = True
    for request in requests:
        results = read_results(request.folder)
        if results is None:
            print(f"{request.key}: no stored results")
            continue
        chosen = choose(request.folder, results, 60 * minutes / len(requests))
        reruns = []
        with working(f"checking {request.key}", "runs", len(chosen)) as progress:
            for one in chosen:
                reruns.append(rerun(one))
                progress(len(reruns))
        agrees &= not any(one.differing or one.violations for one in reruns)
        print("\n".join(summary(request.key, reruns)), flush=True)
    return 0 if agrees else 1


def _run(
    requests: list[Request],
    paper: str,
    lake: str,
    out: Path | None,
    store: bool,
    as_json: bool,
    in_session: AbstractContextManager[Any],
) -> int:
    """Run the missing units, judge the claims, and write tables and figures."""
    from precede.cli.evidence.exhibits import write_exhibits
    from precede.lake.layout import Lake
    from precede.pipeline.reproduction.reproduce import is_finished, reproduce

    where = Lake(lake)
    if is_finished(where, requests):
        results = reproduce(where, requests, None, store=store)
    else:
        with (
            in_session as session,
            working(f"reproducing {paper}", "runs") as progress,
        ):
            results = reproduce(where, requests, session, progress, store=store)
    folders = [f"{out or f'{where.location}/exhibits'}/{request.name}" for request in requests]
    for result, folder in zip(results, folders, strict=True):
        if out is not None:
            write_exhibits(result, Path(folder))
            continue
        with where.storage.workspace("_jobs") as workspace:
            for file in write_exhibits(result, workspace):
                where.storage.put_file(f"{where.exhibits(result.request.name)}/{file.name}", file)
    if as_json:
        print(json.dumps([as_plain(result) for result in results], indent=2))
    else:
        for result, folder in zip(results, folders, strict=True):
            print("\n".join(describe(result, folder, where.location)))
    return exit_code(results)


def read_requests(paper: str, scale: str | None, papers: Path, same_code: bool = False) -> list[Request]:
    """Turn the command's arguments into one request for each paper, or raise BadInput."""
    from precede.reproduction.request import Request
    from precede.reproduction.results import STORED
    from precede.reproduction.units import PAPERS

    if scale not in ("quick", "paper", None):
        raise BadInput(f"--scale: expected quick or paper, got {scale!r}")
    scale = scale or STORED
    key, _, exhibit = paper.partition("/")
    keys = PAPERS if key == "all" and not exhibit else (key,)
    requests = [
        Request(key=one, folder=papers / one, scale=scale, exhibit=exhibit.lower(), same_code=same_code)
        for one in keys
    ]
    for request in requests:
        if request.key not in PAPERS:
            raise BadInput(f"no paper {request.key!r} {nearest(request.key, (*PAPERS, 'all'))}")
        if not (request.folder / "claims.toml").is_file():
            raise BadInput(f"no claims of {request.key} in {papers} (name the folder with --papers)")
    return requests


def request_with_trace(requests: list[Request], written: str, lake: str, store: bool) -> Request:
    """Return the request for a paper's claims on a recorded trace, whose files go into the lake's folder."""
    from precede.reproduction.guidec2021.trace import folder_with_trace, read_trace_option
    from precede.reproduction.results import STORED

    (request, *others) = requests
    if request.key != "guidec2021" or others:
        raise BadInput("--with is for guidec2021: precede reproduce guidec2021 --with ostermalm_001_1=FILE")
    if request.scale == STORED or store:
        raise BadInput("--with runs the trace: add --scale quick or --scale paper, and leave out --store")
    name, file = read_trace_option(written)
    if "://" in lake:
        raise BadInput(f"--with needs a lake in a folder, got {lake}")
    folder = folder_with_trace(request.folder, name, file, Path(lake) / "traces" / name)
    return structs.replace(request, folder=folder, trace=name)


def exit_code(results: list[Reproduction]) -> int:
    """Return the exit code. 3: runs failed. 1: a claim is missed, or an order is violated. 0: neither."""
    if any(result.failed for result in results):
        return 3
    missed = any(one.status == "not reproduced" for result in results for one in result.comparisons)
    return 1 if missed or any(result.violations for result in results) else 0


def describe(result: Reproduction, folder: str | Path | None, location: str | Path | None) -> list[str]:
    """Return the result as lines: counts, every claim by exhibit, the folders of the output."""
    from precede.cli.evidence.exhibits import measures_table
    from precede.report.tables import markdown
    from precede.reproduction.exhibits import by_exhibit, count_automatic, count_statuses

    again = f" ({result.finished_before:,} were finished before)" if result.finished_before else ""
    if location is None:
        again = " (stored)"
    lines = [
        f"{result.request.name}: {result.units:,} runs{again}, {result.violations:,} violations, "
        f"{result.unverified:,} not shown to the witness, {result.cpu_s:,.0f} s of CPU"
    ]
    lines += by_other_code(result.by_other_code)
    lines += [f"  failed: {line}" for line in result.failed[:3]]
    for reading in dict.fromkeys(one.reading for one in result.comparisons):
        counts = count_statuses([one for one in result.comparisons if one.reading == reading])
        words = ", ".join(f"{count} {status}" for status, count in counts.items())
        lines.append(f"  claims{f', {reading}' if reading else ''}: {words}")
    exhibits = by_exhibit(result.comparisons)
    for exhibit, comparisons in exhibits.items():
        lines.append(f"  {exhibit}")
        lines += [line for one in comparisons for line in _describe_claim(one)]
    if not exhibits:
        lines += [f"  {line}" for line in markdown(measures_table(result)).splitlines()]
    held, automatic = count_automatic(result.comparisons)
    if automatic:
        lines.append(f"  counted apart: {held} of {automatic} identities hold, whatever the protocol does")
    if location is not None:
        lines.append(f"Tables in {location}: runs, verdicts, measures, comparisons; exhibits in {folder}")
    elif folder is not None:
        lines.append(f"Exhibits in {folder}/{result.request.name}")
    return lines


def _describe_claim(one: Comparison) -> list[str]:
    from precede.cli.evidence.exhibits import interval, ours, published

    between = f" [{interval(one)}]" if one.interval else ""
    off = f", off by {one.off:+.1f} %" if one.off else ""
    reading = f" ({one.reading})" if one.reading else ""
    values = f"paper {published(one.claim)}, ours {ours(one) or '-'}{between}{off}"
    lines = [f"    {one.status:21} {one.claim.id}{reading}: {values}"]
    if one.reason:
        lines.append(f"      because {one.reason} [{one.shown_by}]")
    return lines


def as_plain(result: Reproduction) -> dict[str, Any]:
    from precede.reproduction.exhibits import count_automatic, count_statuses

    return {
        "paper": result.request.key,
        "exhibit": result.request.exhibit or None,
        "scale": result.request.scale,
        "units": result.units,
        "finished_before": result.finished_before,
        "failed": list(result.failed),
        "violations": result.violations,
        "unverified": result.unverified,
        "by_other_code": result.by_other_code,
        "cpu_s": round(result.cpu_s, 1),
        "statuses": count_statuses(result.comparisons),
        "identities": count_automatic(result.comparisons),
        "claims": [
            {
                "id": one.claim.id,
                "exhibit": one.claim.exhibit,
                "reading": one.reading or None,
                "status": one.status,
                "scale": one.scale,
                "automatic": one.claim.automatic,
                "ours": one.ours,
                "interval": one.interval,
                "off_percent": one.off,
                "published": [None if abs(bound) == float("inf") else bound for bound in one.claim.bounds],
                "points": one.points,
                "runs": one.runs,
                "reason": one.reason,
                "shown_by": one.shown_by,
                "says": one.claim.says,
                "place": one.claim.place,
            }
            for one in result.comparisons
        ],
    }
