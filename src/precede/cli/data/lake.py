"""`precede lake`: checks the files of a lake."""

from __future__ import annotations

from typing import Annotated

import typer

from precede.cli import new_app
from precede.cli.data.spark import LakeOption

app = new_app()


@app.callback()
def group() -> None:
    """Look after a lake.

    \b
    Example:
      precede lake check --lake lake
    """


@app.command()
def check(
    lake: LakeOption = "lake",
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as one JSON list")] = False,
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
    findings = list(find_damage(storage))
    if as_json:
        print(json.dumps([{"file": finding.path, "what": finding.what} for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.path}: {finding.what}")
        result = f"{len(findings):,} findings" if findings else "every file is as it was written"
        print(f"{storage.location}: {result}")
    return 1 if findings else 0
