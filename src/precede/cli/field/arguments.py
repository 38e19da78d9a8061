"""Arguments that several commands of real nodes share: addresses and the group's keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from precede.core.errors import BadInput

if TYPE_CHECKING:
    from precede.runtime.rosters import SignedRoster


def read_address(text: str, option: str) -> tuple[str, int]:
    """Read host and port from HOST:PORT, or [HOST]:PORT for IPv6. Raise BadInput if there is no such host.

    A host name is resolved once, since neighbours are identified by address.
    """
    import socket

    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadInput(f"{option} {text}: write HOST:PORT")
    try:
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        resolved = socket.getaddrinfo(host.strip("[]") or "127.0.0.1", int(port), family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise BadInput(f"{option} {text}: no such host ({error})") from None
    return str(resolved[0][4][0]), int(port)


def read_secrets(file: Path | None, open_door: bool) -> tuple[bytes, ...] | None:
    """Read the group's secrets from a key file; None with `--open`. BadInput for neither or both."""
    from precede.runtime.links.keyring import read_keys

    if file is not None and open_door:
        raise BadInput("--keys and --open contradict each other")
    if file is None and not open_door:
        raise BadInput(
            "--keys FILE is needed (make one: precede keys make FILE), or --open on a protected link"
        )
    return None if file is None else read_keys(file)


def read_group_keys(file: Path | None, open_door: bool, group: str) -> tuple[bytes, ...]:
    """Derive the keys of a group from the secrets of a key file; none if the user chose `--open`."""
    from precede.runtime.names import group_key

    return tuple(group_key(secret, group) for secret in read_secrets(file, open_door) or ())


def read_any_roster(file: Path | None, admin: str | None) -> dict[str, bytes] | SignedRoster | None:
    """Read a roster: a signed one if the administrator's key is given, None if there is no file."""
    from precede.runtime.links.keyring import read_roster, read_signed_roster

    if file is None:
        return None
    return read_roster(file) if admin is None else read_signed_roster(file)


def read_public_key(digits: str) -> bytes:
    """Read the public key after `--admin` from hexadecimal digits. Raise BadInput if it is none."""
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise BadInput(f"--admin {digits[:80]}: not a public key (64 hexadecimal digits)")
    return key


def read_cellular_protocol(protocol: str) -> str:
    """Return the name of a protocol that has hosts and stations. Raise BadInput if it has none."""
    if protocol not in ("was", "ck"):
        raise BadInput(f"--protocol {protocol}: none of was, ck")
    return protocol
