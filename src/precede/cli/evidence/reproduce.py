"""`precede reproduce`: a paper's numbers beside ours, every run verified."""

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

if TYPE_CHECKING:
    from precede.pipeline.reproduction.reproduce import Asked, Reproduced
    from precede.reproduction.judging import Comparison

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
    """Run what is missing of a paper's experiments, verify every run, and hold the results against the paper.

    Each claim is reproduced, close, better than published, not reproduced (with the reason we found), withheld
    (our copy of the text does not show the value), or answered at the paper's scale only. What is finished is
    not run again: kill it at any time and type the same line again. What another version of this package left
    in the lake is. Exit code 1: a claim is missed, or a run
    broke its order. 3: some runs failed.

    \b
    Examples:
      precede reproduce prs1997 --lake lake
      precede reproduce vcube2018/table1 --scale paper
      precede reproduce all --json
    """
    from precede.cli.evidence.exhibits import write_exhibits
    from precede.lake.jobs import Lake
    from precede.pipeline.reproduction.reproduce import is_finished, reproduce

    asked = read_asked(paper, scale, papers or find_papers(), same_code)
    where = Lake(lake)
    if is_finished(where, asked):
        told = reproduce(where, asked, None)
    else:
        with session_for(master, conf, f"reproduce {paper}") as session, counting("runs") as progress:
            told = reproduce(where, asked, session, progress)
    folders = [(out or where.root / "exhibits") / one.name for one in asked]
    for found, folder in zip(told, folders, strict=True):
        write_exhibits(found, folder)
    if page is not None:
        write_page(told[0], page)
    if as_json:
        print(json.dumps([as_plain(found) for found in told], indent=2))
    else:
        for found, folder in zip(told, folders, strict=True):
            print("\n".join(describe(found, folder, where.root)))
    return exit_code(told)


def read_asked(paper: str, scale: str, papers: Path, same_code: bool = False) -> list[Asked]:
    """What was typed, as one request for each paper."""
    from precede.pipeline.reproduction.reproduce import Asked
    from precede.reproduction.units import PAPERS

    if scale not in ("quick", "paper"):
        raise BadInput(f"--scale {scale!r}: quick or paper")
    key, _, exhibit = paper.partition("/")
    keys = PAPERS if key == "all" and not exhibit else (key,)
    asked = [
        Asked(key=one, folder=papers / one, scale=scale, exhibit=exhibit.lower(), same_code=same_code)
        for one in keys
    ]
    for one in asked:
        if one.key not in PAPERS:
            raise BadInput(f"no paper {one.key!r} (known: {', '.join(PAPERS)}, all)")
        if not (one.folder / "claims.toml").is_file():
            raise BadInput(f"no claims of {one.key} in {papers} (--papers says where they are)")
    return asked


def find_papers() -> Path:
    """The folder of claims: here, or in the source that this package runs from."""
    here = Path("papers")
    source = Path(__file__).parents[4] / "papers"
    return here if here.is_dir() or not source.is_dir() else source


def write_page(told: Reproduced, page: Path) -> None:
    """The result into a Markdown page, in place of what stands between its two marks.

    The marks are those of the whole paper, `<!-- reproduced: begin -->` and `end`, or of the exhibit that was
    asked for, `<!-- reproduced figure4: begin -->`; an exhibit's figures are drawn beside the page.
    """
    from precede.cli.evidence.exhibits import figures_beside, markdown_of

    asked = told.asked
    marks = [mark.format(f" {asked.exhibit}" if asked.exhibit else "") for mark in (BEGIN, END)]
    before, begin, rest = page.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise BadInput(f"{page}: no marks {marks[0]} and {marks[1]}")
    what = f"{asked.key}/{asked.exhibit}" if asked.exhibit else asked.key
    text = markdown_of(told, f"precede reproduce {what} --scale {asked.scale} --page {page}")
    if asked.exhibit and not asked.is_of_reasons:
        text += "\n" + figures_beside(told, page)
    page.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


def exit_code(told: list[Reproduced]) -> int:
    """3: runs failed. 1: a claim missed, or an order broken. 0: neither."""
    if any(found.failed for found in told):
        return 3
    missed = any(one.status == "not reproduced" for found in told for one in found.comparisons)
    return 1 if missed or any(found.violations for found in told) else 0


def describe(told: Reproduced, folder: Path, root: Path) -> list[str]:
    """What a person reads: counts, every claim by exhibit, where everything lies."""
    from precede.cli.evidence.exhibits import count_statuses, measures_table
    from precede.report.tables import markdown

    again = f" ({told.finished_before:,} were finished before)" if told.finished_before else ""
    lines = [
        f"{told.asked.name}: {told.units:,} runs{again}, {told.violations:,} violations, "
        f"{told.unverified:,} not shown to the witness, {told.cpu_s:,.0f} s of CPU"
    ]
    lines += by_other_code(told.by_other_code)
    lines += [f"  failed: {line}" for line in told.failed[:3]]
    readings = list(dict.fromkeys(one.reading for one in told.comparisons))
    for reading in readings:
        counts = count_statuses([one for one in told.comparisons if one.reading == reading])
        words = ", ".join(f"{count} {status}" for status, count in counts.items())
        lines.append(f"  claims{f', {reading}' if reading else ''}: {words}")
    exhibits = dict.fromkeys(one.claim.exhibit for one in told.comparisons)
    for exhibit in exhibits:
        lines.append(f"  {exhibit}")
        chosen = [one for one in told.comparisons if one.claim.exhibit == exhibit]
        lines += [line for one in chosen for line in _told(one)]
    if not exhibits:
        lines += [f"  {line}" for line in markdown(measures_table(told)).splitlines()]
    return [*lines, f"Tables in {root}: runs, verdicts, measures, comparisons; exhibits in {folder}"]


def _told(one: Comparison) -> list[str]:
    from precede.cli.evidence.exhibits import interval, ours, published

    between = f" [{interval(one)}]" if one.interval else ""
    off = f", off by {one.off:+.1f} %" if one.off else ""
    reading = f" ({one.reading})" if one.reading else ""
    found = f"paper {published(one.claim)}, ours {ours(one) or '-'}{between}{off}"
    lines = [f"    {one.status:21} {one.claim.id}{reading}: {found}"]
    if one.reason:
        lines.append(f"      because {one.reason} [{one.shown_by}]")
    return lines


def as_plain(told: Reproduced) -> dict[str, Any]:
    """One paper as JSON."""
    from precede.cli.evidence.exhibits import count_statuses

    return {
        "paper": told.asked.key,
        "exhibit": told.asked.exhibit or None,
        "scale": told.asked.scale,
        "units": told.units,
        "finished_before": told.finished_before,
        "failed": list(told.failed),
        "violations": told.violations,
        "unverified": told.unverified,
        "by_other_code": told.by_other_code,
        "cpu_s": round(told.cpu_s, 1),
        "statuses": count_statuses(told.comparisons),
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
            for one in told.comparisons
        ],
    }
