"""`precede reproduce`: runs a paper's experiments, verifies every run, compares the results with the paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from precede.cli.data.spark import (
    ConfOption,
    LakeOption,
    MasterOption,
    SameCodeOption,
    by_other_code,
    counting,
    session_for,
)
from precede.core.errors import BadInput
from precede.reproduction.papers import find_papers

if TYPE_CHECKING:
    from precede.reproduction.judging import Comparison
    from precede.reproduction.request import Reproduction, Request

BEGIN: Final = "<!-- reproduced{}: begin -->"
END: Final = "<!-- reproduced{}: end -->"


def command(
    paper: Annotated[str, typer.Argument(metavar="PAPER[/EXHIBIT]", help="prs1997, prs1997/figure4, or all")],
    scale: Annotated[str, typer.Option(help="quick (minutes) or paper (the paper's sizes, days)")] = "quick",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
    lake: LakeOption = "lake",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="tables and figures; default LAKE/exhibits/PAPER-SCALE")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="also write the result between this page's marks")
    ] = None,
    papers: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="folder of claims; default: papers"),
    ] = None,
    same_code: SameCodeOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> int:
    """Run a paper's experiments, verify every run, and compare the results with the paper's claims.

    Each claim is reproduced, close, better than published, not reproduced (with the reason we found), withheld
    (our copy of the text does not show the value), or answered at the paper's scale only. Finished runs are not
    repeated: kill the command at any time and type the same line again. Runs that another version of this
    package left in the lake are repeated. Exit code 1: a claim is missed, or a run violated its order. 3: some
    runs failed.

    \b
    Examples:
      precede reproduce prs1997 --lake lake
      precede reproduce vcube2018/table1 --scale paper
      precede reproduce all --json
    """
    from precede.cli.evidence.exhibits import write_exhibits
    from precede.lake.layout import Lake
    from precede.pipeline.reproduction.reproduce import is_finished, reproduce

    requests = read_requests(paper, scale, find_papers(papers), same_code)
    where = Lake(lake)
    if is_finished(where, requests):
        results = reproduce(where, requests, None)
    else:
        with session_for(master, conf, f"reproduce {paper}") as session, counting("runs") as progress:
            results = reproduce(where, requests, session, progress)
    folders = [f"{out or f'{where.location}/exhibits'}/{request.name}" for request in requests]
    for result, folder in zip(results, folders, strict=True):
        if out is not None:
            write_exhibits(result, Path(folder))
            continue
        with where.storage.workspace("_jobs") as workspace:
            for file in write_exhibits(result, workspace):
                where.storage.put_file(f"{where.exhibits(result.request.name)}/{file.name}", file)
    if page is not None:
        write_page(results[0], page)
    if as_json:
        print(json.dumps([as_plain(result) for result in results], indent=2))
    else:
        for result, folder in zip(results, folders, strict=True):
            print("\n".join(describe(result, folder, where.location)))
    return exit_code(results)


def read_requests(paper: str, scale: str, papers: Path, same_code: bool = False) -> list[Request]:
    """Turn the command's arguments into one request for each paper, or raise BadInput."""
    from precede.reproduction.request import Request
    from precede.reproduction.units import PAPERS

    if scale not in ("quick", "paper"):
        raise BadInput(f"--scale: expected quick or paper, got {scale!r}")
    key, _, exhibit = paper.partition("/")
    keys = PAPERS if key == "all" and not exhibit else (key,)
    requests = [
        Request(key=one, folder=papers / one, scale=scale, exhibit=exhibit.lower(), same_code=same_code)
        for one in keys
    ]
    for request in requests:
        if request.key not in PAPERS:
            raise BadInput(f"no paper {request.key!r} (known: {', '.join(PAPERS)}, all)")
        if not (request.folder / "claims.toml").is_file():
            raise BadInput(f"no claims of {request.key} in {papers} (name the folder with --papers)")
    return requests


def write_page(result: Reproduction, page: Path) -> None:
    """Replace the text between the two marks of a Markdown page by the result.

    The marks of a whole paper are `<!-- reproduced: begin -->` and `<!-- reproduced: end -->`, those of an
    exhibit `<!-- reproduced figure4: begin -->`; an exhibit's figures are written next to the page.
    """
    from precede.cli.evidence.exhibits import markdown_of, write_page_figures

    request = result.request
    marks = [mark.format(f" {request.exhibit}" if request.exhibit else "") for mark in (BEGIN, END)]
    before, begin, rest = page.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise BadInput(f"{page}: no marks {marks[0]} and {marks[1]}")
    title = f"{request.key}/{request.exhibit}" if request.exhibit else request.key
    text = markdown_of(result, f"precede reproduce {title} --scale {request.scale} --page {page}")
    if request.exhibit and not request.is_of_reasons:
        text += "\n" + write_page_figures(result, page)
    page.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


def exit_code(results: list[Reproduction]) -> int:
    """Return the exit code. 3: runs failed. 1: a claim is missed, or an order is violated. 0: neither."""
    if any(result.failed for result in results):
        return 3
    missed = any(one.status == "not reproduced" for result in results for one in result.comparisons)
    return 1 if missed or any(result.violations for result in results) else 0


def describe(result: Reproduction, folder: str | Path, location: str | Path) -> list[str]:
    """Return the result as lines: counts, every claim by exhibit, the folders of the output."""
    from precede.cli.evidence.exhibits import measures_table
    from precede.report.tables import markdown
    from precede.reproduction.exhibits import by_exhibit, count_statuses

    again = f" ({result.finished_before:,} were finished before)" if result.finished_before else ""
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
    return [*lines, f"Tables in {location}: runs, verdicts, measures, comparisons; exhibits in {folder}"]


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
    from precede.reproduction.exhibits import count_statuses

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
        "claims": [
            {
                "id": one.claim.id,
                "exhibit": one.claim.exhibit,
                "reading": one.reading or None,
                "status": one.status,
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
