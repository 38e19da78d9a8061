"""`precede keys`: a group's keys (make, show, export, take, rotate, promote) and a member's identity."""

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
    from precede.runtime.links.keyring import fingerprint, make_keys

    print(f"{file}: key {fingerprint(make_keys(file))}, readable by you alone")


@app.command()
def show(file: Annotated[Path, _FILE]) -> None:
    """Print the keys' fingerprints, the sealing key first; two members compare these, not the keys.

    \b
    Example:
      precede keys show picnic.keys
    """
    from precede.runtime.links.keyring import fingerprint, read_keys

    for place, key in enumerate(read_keys(file)):
        print(f"{fingerprint(key)}  {'seals and opens' if place == 0 else 'opens'}")


@app.command()
def export(file: Annotated[Path, _FILE]) -> None:
    """Print the newest key itself, to be carried to another member over a channel that you trust.

    \b
    Example:
      precede keys export picnic.keys | ssh ben precede keys take picnic.keys
    """
    from precede.runtime.links.keyring import newest_key

    print(newest_key(file).hex())


@app.command()
def take(file: Annotated[Path, _FILE]) -> None:
    """Read a key, as `export` printed it, from standard input: it opens from now on; in a new file it seals.

    \b
    Example:
      precede keys take picnic.keys < key-on-a-stick
    """
    import sys

    from precede.core.errors import BadInput
    from precede.runtime.links.keyring import fingerprint, take_key
    from precede.runtime.links.noise import KEY_BYTES

    try:
        key = bytes.fromhex(sys.stdin.readline(1000))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadInput(f"standard input: not a key ({2 * KEY_BYTES} hexadecimal digits)")
    take_key(file, key)
    print(f"{file}: {fingerprint(key)} opens")


@app.command()
def rotate(file: Annotated[Path, _FILE]) -> None:
    """Make a fresh key that opens and does not seal yet. Carry it to the others, then `promote` it everywhere.

    \b
    Example:
      precede keys rotate picnic.keys
    """
    from precede.runtime.links.keyring import fingerprint, rotate_keys

    key = rotate_keys(file)
    print(f"{file}: {fingerprint(key)} opens; once every member has it (export, take), `promote` it")


@app.command()
def promote(
    file: Annotated[Path, _FILE],
    keep: Annotated[int, typer.Option(min=1, max=8, help="how many keys stay valid")] = 2,
) -> None:
    """Seal with the newest key from now on; the one before still opens. A running node follows within a second.

    \b
    Example:
      precede keys promote picnic.keys
      precede keys promote picnic.keys --keep 1      # the old key opens nothing any more
    """
    from precede.runtime.links.keyring import fingerprint, promote_key

    keys = promote_key(file, keep)
    print(f"{file}: now seals with {fingerprint(keys[0])}; {len(keys)} keys open")


@app.command()
def roster(file: Annotated[Path, typer.Argument(metavar="FILE", help="the roster")]) -> None:
    """Check a roster, and print each member with the fingerprint of its key, for comparing over the phone.

    \b
    Example:
      precede keys roster picnic.roster
    """
    from precede.runtime.links.keyring import fingerprint, read_roster

    for name, public in read_roster(file).items():
        print(f"{fingerprint(public)}  {name}")


@app.command()
def identity(
    file: Annotated[Path, _FILE], name: Annotated[str, typer.Argument(help="the member's name")]
) -> None:
    """Make a member's signing key, readable by you alone, and print its line for everybody's roster.

    \b
    Example:
      precede keys identity ana.identity ana >> picnic.roster
    """
    from precede.core.errors import BadInput
    from precede.runtime.links.keyring import make_identity

    if len(name.split()) != 1 or "#" in name:
        raise BadInput(f"{name!r}: a name in a roster is one word without #")
    print(f"{name} {make_identity(file).hex()}")
