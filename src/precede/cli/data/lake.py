"""`precede lake`: checks and merges the files of a lake."""

from typing import Annotated

from precede.cli.data.spark import LakeOption
from precede.cli.parameters import Group, Option
from precede.cli.progress import working

app = Group()


@app.callback()
def group() -> None:
    """Look after a lake.

    \b
    Example:
      precede lake check --lake lake
      precede lake compact --lake lake
    """


@app.command()
def check(
    lake: LakeOption = "lake",
    as_json: Annotated[bool, Option("--json", help="print the findings as one JSON list")] = False,
) -> int:
    """Compare every file of a lake with its commit record: size and digest.

    Finds truncated, altered, exchanged and missing files, and files that no job wrote. Exit code 0: none. 1: at
    least one, each printed with its name.

    \b
    Example:
      precede lake check --lake lake
    """
    import json

    from precede.core.errors import BadInput
    from precede.lake.integrity import find_damage
    from precede.lake.layout import Lake

    storage = Lake(lake).storage
    if not storage.exists():
        raise BadInput(f"no lake {lake!r}: {storage.location} does not exist")
    with working(f"comparing {lake}", "files") as progress:
        findings = list(find_damage(storage, progress))
    if as_json:
        print(json.dumps([{"file": finding.path, "what": finding.what} for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.path}: {finding.what}")
        result = f"{len(findings):,} findings" if findings else "every file is as it was written"
        print(f"{storage.location}: {result}")
    return 1 if findings else 0


@app.command("compact")
def compact_files(
    lake: LakeOption = "lake",
    older_than: Annotated[
        str, Option(metavar="1h", help="also remove leftovers of killed jobs that are older than this")
    ] = "24h",
    as_json: Annotated[bool, Option("--json", help="print the counts as one JSON object")] = False,
) -> None:
    """Merge small files of runs, and remove rows and files that were replaced or that a killed job left.

    Every unit keeps its rows. Other jobs may run on the lake meanwhile; no job may be older than the leftovers.

    \b
    Example:
      precede lake compact --lake lake
    """
    import json

    import msgspec

    from precede.core.errors import BadInput
    from precede.core.instants import SECOND, parse_duration
    from precede.lake.compaction import compact
    from precede.lake.layout import Lake

    store = Lake(lake)
    if not store.storage.exists():
        raise BadInput(f"no lake {lake!r}: {store.location} does not exist")
    try:
        age_s = parse_duration(older_than) / SECOND
    except ValueError as error:
        raise BadInput(f"--older-than: {error}") from None
    with working(f"merging small files of {lake}"), store.job("compact").hold() as job:
        compacted = compact(job, age_s)
    if as_json:
        print(json.dumps(msgspec.to_builtins(compacted)))
        return
    print(
        f"{store.location}: {compacted.files:,} files, {compacted.files_before:,} before; "
        f"{compacted.leftovers:,} leftovers removed"
    )
