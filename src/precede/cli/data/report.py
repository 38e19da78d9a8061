"""`precede report`: writes a site from the results in a lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from precede.cli.data.spark import LakeOption
from precede.cli.parameters import Option
from precede.cli.progress import working

if TYPE_CHECKING:
    from precede.lake.layout import Lake
    from precede.report.protocol_pages import Card
    from precede.report.site import Built
    from precede.report.tables import Cell


def command(
    out: Annotated[Path, Option("--out", metavar="DIR", help="folder for the site")],
    lake: LakeOption = "lake",
    events: Annotated[int, Option(min=1, help="largest number of events on a run's page")] = 100_000,
    runs: Annotated[
        int | None,
        Option(
            min=0,
            help="largest number of runs with a page, those with violations first (default: 200, and fewer if"
            " their logs have more than 10 million rows)",
        ),
    ] = None,
    papers: Annotated[
        Path | None,
        Option(
            metavar="DIR", help="folder of claims (default: papers in this folder or of the source checkout)"
        ),
    ] = None,
    evidence: Annotated[
        Path | None, Option(metavar="DIR", help="folder of members' logs: show who equivocated")
    ] = None,
    shiviz: Annotated[
        str | None,
        Option(metavar="RUN", help="write the log of this run in ShiViz's format instead of a site"),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="print the result as one JSON object")] = False,
) -> None:
    """Write a site from a lake. It opens from a disk in any browser and needs no network.

    \b
    Example:
      precede sweep buses.toml
      precede report --out site
      precede report --evidence logs --out site
      precede report --shiviz fifo-s1-0fc0bc6b4725 --out site
    """
    from precede.core.errors import BadInput
    from precede.lake.layout import Lake
    from precede.report.site import build_site
    from precede.reproduction.papers import find_papers

    store = Lake(lake)
    if not store.storage.exists():
        raise BadInput(f"--lake {lake}: no such folder (precede sweep creates one)")
    if shiviz is not None:
        sentence = write_shiviz(store, shiviz, events, out)
        print(json.dumps({"result": sentence}) if as_json else sentence)
        return
    with working("writing the site", "pages of runs") as progress:
        built = build_site(
            *(store, out, protocol_cards(), find_papers(papers)),
            stored=stored_comparisons(find_papers(papers)),
            events=events,
            runs=runs,
            evidence=[] if evidence is None else evidence_rows(evidence),
            progress=progress,
        )
    plain = {**built._asdict(), "front": str(built.front)}
    print(json.dumps(plain) if as_json else "\n".join(_describe(built, out)))


def _describe(built: Built, out: Path) -> Iterator[str]:
    yield f"{built.pages:,} pages, {built.bytes / 1e6:.1f} MB, in {out}"
    if built.runs_left_out:
        yield f"{built.runs_left_out:,} runs have no page (use --runs for more; a page needs the run's log)"
    yield f"Open {built.front}"


def stored_comparisons(papers: Path) -> list[dict[str, Any]]:
    """Return rows of `comparisons` for the results that travel with each paper."""
    from precede.pipeline.reproduction.tables import comparison_row
    from precede.reproduction.claims import read_claims, read_reasons
    from precede.reproduction.results import judge_stored, read_results

    rows = []
    for claims_file in sorted(papers.glob("*/claims.toml")):
        results = read_results(claims_file.parent)
        if results is not None:
            reasons = read_reasons(claims_file.with_name("reasons.toml")).reason
            judged = judge_stored(read_claims(claims_file), results, reasons)
            rows += [comparison_row(f"{results.paper}-stored", results.paper, one) for one in judged]
    return rows


def evidence_rows(folder: Path) -> list[list[Cell]]:
    """Return a row of the site for each piece of evidence beside the event logs in a folder, if all hold."""
    from precede.core.errors import BadInput
    from precede.eventlog.schema import EVIDENCE_FILE
    from precede.runtime.evidence.files import read_evidence
    from precede.runtime.evidence.proofs import Equivocation

    if not folder.is_dir():
        raise BadInput(f"--evidence {folder}: no such folder")
    rows: list[list[Cell]] = []
    for each in read_evidence(sorted(folder.rglob(EVIDENCE_FILE))):
        if isinstance(each, Equivocation):
            rows.append([each.author, each.text, "a proof" if each.is_proof else "a hint", each.public.hex()])
        else:
            rows.append([each.author, each.text, "redacted", ""])
    return rows


def write_shiviz(lake: Lake, run_id: str, events: int, out: Path) -> str:
    """Write one run's log for ShiViz, which draws logs, and return a sentence about it."""
    from precede.core.errors import BadInput
    from precede.report.run_data import read_log
    from precede.report.shiviz import shiviz_lines

    if not lake.has("events", run_id):
        raise BadInput(f"--shiviz {run_id}: the lake {lake.location} has no such run")
    log = read_log(lake, run_id, events)
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{run_id}.shiviz.log"
    file.write_text("".join(f"{line}\n" for line in shiviz_lines(log)), encoding="utf-8")
    return f"{len(log.at_us):,} of {log.rows:,} events read; {file} opens in ShiViz with its default expression"


def protocol_cards() -> list[Card]:
    from precede.protocols import registry
    from precede.report.protocol_pages import Card

    cards = []
    for name in registry.names():
        entry = registry.find(name)
        options = [
            (f"{key} (over {below})" if below else key, option.written_default(), option.help)
            for below, group in registry.option_groups(entry).items()
            for key, option in group.items()
        ]
        cards.append(
            Card(name, entry.title, entry.paper, entry.order, entry.worlds, options, _PAPERS.get(name, ""))
        )
    return cards


_PAPERS = {
    "causal_barrier": "guidec2021",
    "delta_causal": "guidec2021",
    "hash_dag": "guidec2021",
    "prs": "prs1997",
    "rst": "prs1997",
    "ses": "prs1997",
    "vcube": "vcube2018",
    "drift": "drift2006",
    "tof": "drift2006",
    "was": "was2021",
    "ck": "was2021",
}
