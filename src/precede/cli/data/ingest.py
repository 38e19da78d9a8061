"""`precede ingest`: real traces into the lake."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precede.cli.data.spark import ConfOption, LakeOption, MasterOption, session_for

if TYPE_CHECKING:
    from precede.pipeline.mobility.ingest import Ingested


def command(
    files: Annotated[list[Path], typer.Argument(help="files to read, plain or gzipped; a GTFS zip or folder")],
    format: Annotated[
        str,
        typer.Option("--as", metavar="FORMAT", help="gtfs, gps, positions, ns2, walkers, one, tij or contacts"),
    ],
    name: Annotated[str | None, typer.Option(help="what the trace is called (default: as its file)")] = None,
    lake: LakeOption = "lake",
    date: Annotated[str | None, typer.Option(help="gtfs: the service day, YYYY-MM-DD")] = None,
    columns: Annotated[
        str | None, typer.Option(help="which column is which: node=cab,time=t or id,frame,x,y")
    ] = None,
    framerate: Annotated[float | None, typer.Option(help="positions: frames in a second")] = None,
    scale: Annotated[
        float | None, typer.Option(help="positions: metres in a unit (0.01 for centimetres)")
    ] = None,
    gap: Annotated[
        str | None, typer.Option(help="gps, positions: a longer silence is an absence (10min)")
    ] = None,
    max_speed: Annotated[
        float | None, typer.Option(help="gps, positions: metres a second; more is a jump")
    ] = None,
    window: Annotated[str | None, typer.Option(help="tij: how long one row lasts (20s)")] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Read real traces into the lake, and say of every row what became of it.

    Movement goes to the table segments, meetings to contacts, rows that cannot be used to rejects with file,
    line and reason. Several files are read side by side on Spark. A file that cannot be used leaves the lake
    as it was.

    \b
    Example:
      precede ingest feed.zip --as gtfs --date 2016-09-19 --name bus
      precede ingest taxis.csv.gz --as gps --gap 5min
      precede ingest contacts.txt --as tij
    """
    from precede.lake.jobs import Lake
    from precede.pipeline.mobility.ingest import ingest, sources_of
    from precede.traces.reading import Options

    options = Options(
        date=date,
        columns=columns,
        framerate=framerate,
        scale=scale,
        gap=_duration("--gap", gap),
        max_speed=max_speed,
        window=_duration("--window", window),
    )
    sources = sources_of(files, format, name, options)
    here = master is None and len(sources) == 1
    context: Any = nullcontext() if here else session_for(master, conf, "ingest")
    with context as session:
        for one in ingest(Lake(lake), sources, session):
            print("\n".join(describe(one)))


def describe(one: Ingested) -> list[str]:
    """What became of a file, as a person reads it."""
    lines = one.summary.lines()
    if one.again:
        lines.append("  unchanged since it was read before; nothing was read again")
    lines += [f"  {table}: {path}" for table, path in one.tables.items()]
    if "segments" in one.tables:
        lines.append(f"Next: precede contacts {one.name} --range METRES")
    return lines


def _duration(option: str, written: str | None) -> int | None:
    from precede.core.errors import BadInput
    from precede.core.instants import parse_duration

    try:
        return None if written is None else parse_duration(written)
    except BadInput as error:
        raise BadInput(f"{option}: {error}") from None
