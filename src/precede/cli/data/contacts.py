"""`precede contacts`: computes the contacts of a trace of movement for a radio range."""

from contextlib import nullcontext
from typing import Annotated

from precede.cli.data.spark import ConfOption, LakeOption, MasterOption, session_for
from precede.cli.parameters import Argument, Option
from precede.cli.progress import working


def command(
    name: Annotated[str, Argument(help="a trace in the lake")],
    range_m: Annotated[float, Option("--range", metavar="METRES", help="radio range")],
    lake: LakeOption = "lake",
    master: MasterOption = None,
    conf: ConfOption = None,
    slices: Annotated[int | None, Option(min=1, help="number of tasks that time is cut into")] = None,
    as_json: Annotated[bool, Option("--json", help="print the result as one JSON object")] = False,
) -> None:
    """Compute all contacts of a trace, exactly to the microsecond.

    It is computed in this process unless --master is given or the estimated work exceeds 20 s of CPU; more
    work goes to Spark. The file is the same for any number of slices and workers.

    \b
    Example:
      precede ingest feed.zip --as gtfs --name bus
      precede contacts bus --range 100
    """
    import msgspec

    from precede.lake.layout import Lake
    from precede.pipeline.mobility.contacts import SPARK_PAYS_S, compute_contacts, estimate_cpu_s

    store = Lake(lake)
    is_local = master is None and estimate_cpu_s(store, name, range_m) < SPARK_PAYS_S
    with nullcontext() if is_local else session_for(master, conf, f"contacts {name}") as session:  # noqa: SIM117
        with working(f"contacts of {name}", "slices") as progress:
            computed = compute_contacts(store, name, range_m, session, slices, progress)
    if as_json:
        print(msgspec.json.encode(computed).decode())
        return
    print(f"{computed.nodes:,} nodes in {computed.segments:,} segments, range {computed.range_m:g} m")
    print(f"{computed.contacts:,} contacts in {computed.file}")
