"""`precede keys`: a group's keys (make, show, export, take, rotate, promote) and a member's identity."""

import json
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from precede.cli.parameters import Argument, Group, Option

app = Group()
_FILE = Argument(metavar="FILE", help="the key file")
JsonOption: TypeAlias = Annotated[bool, Option("--json", help="print one JSON object")]


def _say(as_json: bool, text: str, **fields: Any) -> None:
    """Print a result: as text, or its fields as a JSON object."""
    print(json.dumps(fields) if as_json else text)


@app.callback()
def group() -> None:
    """Make, show, export and rotate a group's keys; make a member's identity and sign a roster.

    \b
    Example:
      precede keys make picnic.keys
      precede keys show picnic.keys
    """


@app.command()
def make(file: Annotated[Path, _FILE], as_json: JsonOption = False) -> None:
    """Make a file with a fresh key, readable by you alone.

    \b
    Example:
      precede keys make picnic.keys
    """
    from precede.runtime.links.keyring import fingerprint, make_keys

    made = fingerprint(make_keys(file))
    _say(as_json, f"{file}: key {made}, readable by you alone", file=str(file), fingerprint=made)


@app.command()
def show(file: Annotated[Path, _FILE], as_json: JsonOption = False) -> None:
    """Print the keys' fingerprints, the sealing key first; two members compare these, not the keys.

    \b
    Example:
      precede keys show picnic.keys
    """
    from precede.runtime.links.keyring import fingerprint, read_keys

    prints = [fingerprint(key) for key in read_keys(file)]
    uses = ["seals and opens", *["opens"] * (len(prints) - 1)]
    lines = [f"{mark}  {use}" for mark, use in zip(prints, uses, strict=True)]
    _say(as_json, "\n".join(lines), file=str(file), seals=prints[0], opens=prints)


@app.command()
def export(file: Annotated[Path, _FILE], as_json: JsonOption = False) -> None:
    """Print the newest key itself, to be carried to another member over a channel that you trust.

    \b
    Example:
      precede keys export picnic.keys | ssh ben precede keys take picnic.keys
    """
    from precede.runtime.links.keyring import newest_key

    key = newest_key(file).hex()
    _say(as_json, key, key=key)


@app.command()
def take(file: Annotated[Path, _FILE], as_json: JsonOption = False) -> None:
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
    _say(as_json, f"{file}: {fingerprint(key)} opens", file=str(file), fingerprint=fingerprint(key))


@app.command()
def rotate(file: Annotated[Path, _FILE], as_json: JsonOption = False) -> None:
    """Make a fresh key that opens and does not seal yet. Carry it to the others, then `promote` it everywhere.

    \b
    Example:
      precede keys rotate picnic.keys
    """
    from precede.runtime.links.keyring import fingerprint, rotate_keys

    made = fingerprint(rotate_keys(file))
    text = f"{file}: {made} opens; once every member has it (export, take), `promote` it"
    _say(as_json, text, file=str(file), fingerprint=made)


@app.command()
def promote(
    file: Annotated[Path, _FILE],
    keep: Annotated[int, Option(min=1, max=8, help="how many keys stay valid")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Seal with the newest key from now on; the one before still opens. A running node follows within a second.

    \b
    Example:
      precede keys promote picnic.keys
      precede keys promote picnic.keys --keep 1      # the old key opens nothing any more
    """
    from precede.runtime.links.keyring import fingerprint, promote_key

    prints = [fingerprint(key) for key in promote_key(file, keep)]
    text = f"{file}: now seals with {prints[0]}; {len(prints)} keys open"
    _say(as_json, text, file=str(file), seals=prints[0], opens=prints)


_ROSTER = Argument(metavar="ROSTER", help="the roster")
_ADMIN = Option("--admin", help="the administrator's identity file (precede keys identity)")
_LAST = Option("--last", help="INCARNATION:NUMBER of the old key's last message that counts")
_GROUP = Option("--group", help="the group's name")


@app.command()
def roster(file: Annotated[Path, _ROSTER], as_json: JsonOption = False) -> None:
    """Check a roster, and print each member with the fingerprint of its key, for comparing over the phone.

    \b
    Example:
      precede keys roster picnic.roster
    """
    from precede.runtime.links.keyring import fingerprint, roster_members

    prints = {name: fingerprint(public) for name, public in roster_members(file).items()}
    lines = [f"{mark}  {name}" for name, mark in prints.items()]
    _say(as_json, "\n".join(lines), file=str(file), members=prints)


@app.command()
def sign(
    file: Annotated[Path, _ROSTER],
    admin: Annotated[Path, _ADMIN],
    group: Annotated[str, _GROUP] = "precede",
    as_json: JsonOption = False,
) -> None:
    """Sign a roster as the group's administrator. Members that know the administrator's key accept newer ones.

    \b
    Example:
      precede keys identity admin.identity admin      # prints the public key for --admin of `precede node`
      precede keys sign picnic.roster --admin admin.identity --group picnic
    """
    from precede.runtime.links.keyring import roster_members

    _write_next(as_json, file, admin, group, roster_members(file))


@app.command()
def enrol(
    file: Annotated[Path, _ROSTER],
    name: Annotated[str, Argument(help="the member's name")],
    key: Annotated[str, Argument(help="its public key, as `identity` printed it")],
    admin: Annotated[Path, _ADMIN],
    last: Annotated[str | None, _LAST] = None,
    group: Annotated[str, _GROUP] = "precede",
    as_json: JsonOption = False,
) -> None:
    """Add a member to a signed roster, or replace the key of one whose device is lost.

    \b
    Example:
      precede keys enrol picnic.roster ana 3b6a27bc... --admin admin.identity --group picnic
    """
    from precede.core.errors import BadInput
    from precede.runtime.links.keyring import roster_members

    try:
        public = bytes.fromhex(key)
    except ValueError:
        public = b""
    if len(public) != 32 or len(name.split()) != 1 or name.startswith("@") or "#" in name:
        raise BadInput("expected a name of one word without # or @, and a key of 64 hexadecimal digits")
    _write_next(as_json, file, admin, group, {**roster_members(file), name: public}, _read_last(name, last))


@app.command()
def remove(
    file: Annotated[Path, _ROSTER],
    name: Annotated[str, Argument(help="the member's name")],
    admin: Annotated[Path, _ADMIN],
    last: Annotated[str | None, _LAST] = None,
    group: Annotated[str, _GROUP] = "precede",
    as_json: JsonOption = False,
) -> None:
    """Remove a member from a signed roster. Change the group's keys too: the member still knows the old one.

    \b
    Example:
      precede keys remove picnic.roster mal --admin admin.identity --group picnic
    """
    from precede.core.errors import BadInput
    from precede.runtime.links.keyring import roster_members

    members = roster_members(file)
    if name not in members:
        raise BadInput(f"{file}: no member {name!r}")
    left = {each: key for each, key in members.items() if each != name}
    _write_next(as_json, file, admin, group, left, _read_last(name, last))


def _read_last(name: str, text: str | None) -> dict[str, tuple[int, int]]:
    """Parse INCARNATION:NUMBER as the last message of a member that counts; empty if there is no text."""
    from precede.core.errors import BadInput

    if text is None:
        return {}
    incarnation, _, number = text.partition(":")
    if not (incarnation.isdecimal() and number.isdecimal() and len(text) < 40):
        raise BadInput(f"--last {text}: write INCARNATION:NUMBER")
    return {name: (int(incarnation), int(number))}


def _write_next(
    as_json: bool,
    file: Path,
    admin: Path,
    group: str,
    members: dict[str, bytes],
    last: dict[str, tuple[int, int]] | None = None,
) -> None:
    """Sign these members as the next epoch of a roster of the same administrator, and replace its file."""
    from precede.core.errors import BadInput
    from precede.runtime.links.authorship import public_of
    from precede.runtime.links.keyring import is_signed, read_identity, read_signed_roster, write_signed_roster
    from precede.runtime.rosters import SignedRoster

    seed = read_identity(admin)
    before = read_signed_roster(file) if is_signed(file) else None
    if before is not None:
        before.check(group, public_of(seed))
    if not members:
        raise BadInput(f"{file}: no member would be left")
    after = SignedRoster.signed(seed, group, members, before, last)
    write_signed_roster(file, after)
    signer = public_of(seed).hex()
    text = f"{file}: epoch {after.epoch}, {len(members)} members, signed by {signer}"
    _say(as_json, text, file=str(file), epoch=after.epoch, members=sorted(members), signed_by=signer)


@app.command()
def identity(
    file: Annotated[Path, _FILE],
    name: Annotated[str, Argument(help="the member's name")],
    as_json: JsonOption = False,
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
    public = make_identity(file).hex()
    _say(as_json, f"{name} {public}", file=str(file), name=name, public=public)
