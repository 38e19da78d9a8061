"""`precede ingest`: reads trace files into the lake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from precede.cli.data.spark import ConfOption, LakeOption, MasterOption, session_for
from precede.cli.parameters import Argument, Option
from precede.cli.progress import rows_of, working

if TYPE_CHECKING:
    from precede.lake.layout import Lake
    from precede.pipeline.mobility.ingest import Ingested, Source

FormatOption = Annotated[
    str,
    Option(
        "--as",
        metavar="FORMAT",
        help="gtfs, gps, positions, ns2, bonnmotion, walkers, one, tij, contacts or sightings",
    ),
]
ColumnsOption = Annotated[
    str | None,
    Option(help="names of the columns: node=cab,time=t; or all columns in order: id,frame,x,y"),
]
ScaleOption = Annotated[float | None, Option(help="positions: metres per unit (0.01 for centimetres)")]
GapOption = Annotated[
    str | None, Option(help="gps, positions: a longer gap means that the node was absent (10min)")
]
SpeedOption = Annotated[
    float | None, Option(help="gps, positions: metres per second; faster steps are rejected as jumps")
]
OverlapOption = Annotated[
    str | None,
    Option(
        metavar="union|first",
        help="contacts, sightings: rows of a pair that overlap are merged (union), or the first is kept",
    ),
]
AtLeastOption = Annotated[
    str | None,
    Option(help="contacts, sightings: shorter rows get this length (120s: the interval of scans)"),
]
InternalOption = Annotated[bool, Option("--internal", help="sightings: only devices that scan themselves")]
PresenceOption = Annotated[
    str | None,
    Option(metavar="whole|motion", help="ns2: nodes are there for the whole trace, or only while they move"),
]
ChainOption = Annotated[
    bool, Option("--chain", help="gtfs: join trips without a block into vehicles at termini")
]


def command(
    files: Annotated[list[Path], Argument(help="files to read, plain or gzipped; a GTFS zip or folder")],
    format: FormatOption,
    name: Annotated[str | None, Option(help="name of the trace (default: from the file's name)")] = None,
    lake: LakeOption = "lake",
    date: Annotated[str | None, Option(help="gtfs: the service day, YYYY-MM-DD")] = None,
    columns: ColumnsOption = None,
    framerate: Annotated[float | None, Option(help="positions: frames per second")] = None,
    scale: ScaleOption = None,
    gap: GapOption = None,
    max_speed: SpeedOption = None,
    window: Annotated[str | None, Option(help="tij: the time that one row covers (20s)")] = None,
    overlap: OverlapOption = None,
    at_least: AtLeastOption = None,
    internal: InternalOption = False,
    presence: PresenceOption = None,
    chain: ChainOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    as_json: Annotated[bool, Option("--json", help="print one JSON object for each file")] = False,
) -> None:
    """Read trace files into the lake, and count every row as kept or rejected.

    Movement goes to the table segments, meetings to contacts, rows that cannot be used to rejects with file,
    line and reason. Several files are read in parallel on Spark. If a file cannot be used, the lake stays as
    it was.

    \b
    Example:
      precede ingest feed.zip --as gtfs --date 2016-09-19 --name bus
      precede ingest taxis.csv.gz --as gps --gap 5min
      precede ingest contacts.txt --as tij
      precede ingest imotes.dat --as sightings --at-least 120s --internal
    """
    import msgspec

    from precede.lake.layout import Lake
    from precede.pipeline.mobility.ingest import sources_of
    from precede.traces.reading import Options

    options = Options(
        date=date,
        columns=columns,
        framerate=framerate,
        scale=scale,
        gap=_duration("--gap", gap),
        max_speed=max_speed,
        window=_duration("--window", window),
        overlap=cast("Any", overlap),
        at_least=_duration("--at-least", at_least),
        presence=cast("Any", presence),
        chain=chain or None,
        internal=internal or None,
    )
    for ingested in _ingest(Lake(lake), sources_of(files, format, name, options), master, conf):
        print(msgspec.json.encode(ingested).decode() if as_json else "\n".join(describe(ingested)))


def _ingest(
    lake: Lake, sources: list[Source], master: str | None, conf: list[str] | None
) -> Sequence[Ingested]:
    """Read one file in this process, several or with a master on Spark."""
    from precede.pipeline.mobility.ingest import ingest

    if master is None and len(sources) == 1:
        file = Path(sources[0].path)
        with working(f"reading {file.name}", "rows", rows_of(file)) as progress:
            return ingest(lake, sources, None, progress)
    with session_for(master, conf, "ingest") as session, working(f"reading {len(sources):,} files"):
        return ingest(lake, sources, session)


def describe(ingested: Ingested) -> list[str]:
    lines = ingested.summary.lines()
    if ingested.again:
        lines.append("  the file is unchanged since it was ingested; it was not read again")
    lines += [f"  {table}: {path}" for table, path in ingested.tables.items()]
    if "segments" in ingested.tables:
        lines.append(f"Next: precede contacts {ingested.name} --range METRES")
    return lines


def _duration(option: str, text: str | None) -> int | None:
    """Parse a duration option; the error names the option."""
    from precede.core.errors import BadInput
    from precede.core.instants import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except BadInput as error:
        raise BadInput(f"{option}: {error}") from None
