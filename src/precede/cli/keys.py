"""`precede keys`: make, show, export and rotate a group's keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from precede.cli import new_app

app = new_app()
_FILE = typer.Argument(metavar="FILE", help="the key file")


@app.command()
def make(file: Annotated[Path, _FILE]) -> None:
    """Make a file with a fresh key, readable by you alone.

    \b
    Example:
      precede keys make picnic.keys
    """
    from precede.runtime.keyring import fingerprint, make_keys

    print(f"{file}: key {fingerprint(make_keys(file))}, readable by you alone")


@app.command()
def show(file: Annotated[Path, _FILE]) -> None:
    """Fingerprints, newest first; two members compare these, not the keys.

    \b
    Example:
      precede keys show picnic.keys
    """
    from precede.runtime.keyring import fingerprint, read_keys

    for place, key in enumerate(read_keys(file)):
        print(f"{fingerprint(key)}  {'seals and opens' if place == 0 else 'opens'}")


@app.command()
def export(file: Annotated[Path, _FILE]) -> None:
    """Print the newest key itself, to be carried to another member by a way you trust.

    \b
    Example:
      precede keys export picnic.keys
    """
    from precede.runtime.keyring import read_keys

    print(read_keys(file)[0].hex())


@app.command()
def rotate(
    file: Annotated[Path, _FILE],
    keep: Annotated[int, typer.Option(min=1, max=8, help="how many keys stay valid")] = 2,
) -> None:
    """A fresh key in front; the one before still opens, so that members can follow one by one.

    \b
    Example:
      precede keys rotate picnic.keys
    """
    from precede.runtime.keyring import fingerprint, rotate_keys

    keys = rotate_keys(file, keep)
    print(f"{file}: now seals with {fingerprint(keys[0])}; {len(keys)} keys open")
