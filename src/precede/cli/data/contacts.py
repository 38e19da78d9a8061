"""`precede contacts`: from movement to who could reach whom."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from precede.cli.data.spark import ConfOption, LakeOption, MasterOption, counting, session_for


def command(
    name: Annotated[str, typer.Argument(help="a trace in the lake")],
    range_m: Annotated[float, typer.Option("--range", metavar="METRES", help="radio range")],
    lake: LakeOption = "lake",
    master: MasterOption = None,
    conf: ConfOption = None,
    slices: Annotated[int | None, typer.Option(min=1, help="cut time into so many tasks")] = None,
) -> None:
    """Find all contacts of a trace: every pass, to the microsecond.

    A trace of fewer than 100,000 segments is swept in this process unless --master is given; a larger one on
    Spark. The result is the same file, whatever the number of slices and workers.

    \b
    Example:
      precede ingest feed.zip --as gtfs --name bus
      precede contacts bus --range 100
    """
    from precede.lake.jobs import Lake
    from precede.pipeline.mobility.contacts import SMALL, compute_contacts, count_segments

    where = Lake(lake)
    here = master is None and count_segments(where, name) < SMALL
    with nullcontext() if here else session_for(master, conf, f"contacts {name}") as session:  # noqa: SIM117
        with counting("slices") as progress:
            found = compute_contacts(where, name, range_m, session, slices, progress)
    print(f"{found.nodes:,} nodes in {found.segments:,} segments, range {found.range_m:g} m")
    print(f"{found.contacts:,} contacts in {found.file}")
