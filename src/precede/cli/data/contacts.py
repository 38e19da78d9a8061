"""`precede contacts`: computes the contacts of a trace of movement for a radio range."""

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
    slices: Annotated[int | None, typer.Option(min=1, help="number of tasks that time is cut into")] = None,
) -> None:
    """Compute all contacts of a trace, exactly to the microsecond.

    A trace of fewer than 100,000 segments is computed in this process unless --master is given; a larger one
    on Spark. The file is the same for any number of slices and workers.

    \b
    Example:
      precede ingest feed.zip --as gtfs --name bus
      precede contacts bus --range 100
    """
    from precede.lake.layout import Lake
    from precede.pipeline.mobility.contacts import SMALL, compute_contacts, count_segments

    store = Lake(lake)
    is_local = master is None and count_segments(store, name) < SMALL
    with nullcontext() if is_local else session_for(master, conf, f"contacts {name}") as session:  # noqa: SIM117
        with counting("slices") as progress:
            computed = compute_contacts(store, name, range_m, session, slices, progress)
    print(f"{computed.nodes:,} nodes in {computed.segments:,} segments, range {computed.range_m:g} m")
    print(f"{computed.contacts:,} contacts in {computed.file}")
