"""`precede report`: the lake as pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precede.cli.data.spark import LakeOption, counting

if TYPE_CHECKING:
    from precede.report.protocol_pages import Card


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="folder for the site")],
    lake: LakeOption = "lake",
    events: Annotated[int, typer.Option(min=1, help="most events that a run's page shows")] = 100_000,
    runs: Annotated[int, typer.Option(min=0, help="most runs that get a page (broken ones first)")] = 200,
    papers: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="folder of claims (default: papers here or beside the source)"),
    ] = None,
    shiviz: Annotated[
        str | None, typer.Option(metavar="RUN", help="instead of a site: a run's log in ShiViz's format")
    ] = None,
) -> None:
    """Make a site of a lake: opens from a disk in any browser, needs no network.

    \b
    Example:
      precede sweep buses.toml
      precede report --out site
      precede report --shiviz fifo-s1-0fc0bc6b4725 --out site
    """
    from precede.core.errors import BadInput
    from precede.report.site import build_site

    if not Path(lake).is_dir():
        raise BadInput(f"--lake {lake}: there is no such folder (precede sweep makes one)")
    if shiviz is not None:
        print(write_shiviz(Path(lake), shiviz, events, out))
        return
    with counting("run pages") as progress:
        built = build_site(
            Path(lake), out, protocol_cards(), find_papers(papers), events=events, runs=runs, progress=progress
        )
    print(f"{built.pages:,} pages, {built.bytes / 1e6:.1f} MB, in {out}")
    if built.runs_left_out:
        print(f"{built.runs_left_out:,} runs have no page (--runs allows more; a page needs the run's log)")
    print(f"Open {built.front}")


def write_shiviz(lake: Path, run_id: str, events: int, out: Path) -> str:
    """One run's log for ShiViz; says where it is."""
    from precede.core.errors import BadInput
    from precede.report.run_data import read_log
    from precede.report.shiviz import shiviz_lines

    path = lake / "events" / f"{run_id}.parquet"
    if not path.is_file():
        raise BadInput(f"--shiviz {run_id}: the lake {lake} has no such run")
    log = read_log(path, events)
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{run_id}.shiviz.log"
    with file.open("w", encoding="utf-8") as opened:
        for line in shiviz_lines(log):
            opened.write(line + "\n")
    return f"{len(log.at_us):,} of {log.rows:,} events read; {file} opens in ShiViz with its default expression"


def protocol_cards() -> list[Card]:
    """What the registry says of every protocol."""
    from precede.protocols import registry
    from precede.report.protocol_pages import Card

    cards = []
    for name in registry.names():
        entry = registry.find(name)
        options = [
            (key, option.written_default(), option.help)
            for key, option in registry.options_of_entry(entry).items()
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


def find_papers(given: Path | None) -> Path | None:
    """The folder of claims: as given, in the working directory, or of the checkout this runs from."""
    from precede.core.errors import BadInput

    if given is not None and not given.is_dir():
        raise BadInput(f"--papers {given}: there is no such folder")
    beside = (given, Path("papers"), Path(__file__).parents[4] / "papers")
    return next((path for path in beside if path is not None and any(path.glob("*/claims.toml"))), None)
