"""The network interfaces of this machine that multicast can use."""

import socket
import struct
import sys
from pathlib import Path
from typing import Final, NamedTuple

_GET_FLAGS: Final = 0x8913
_GET_ADDRESS: Final = 0x8915
_UP: Final = 0x1
_LOOPBACK: Final = 0x8
_MULTICAST: Final = 0x1000
_IPV6_ADDRESSES: Final = Path("/proc/net/if_inet6")


class Interface(NamedTuple):
    """An interface. `number` 0 stands for the one that the system chooses. `ipv4` is its address, if any."""

    number: int
    name: str
    ipv4: str | None
    ipv6: bool
    loopback: bool


SYSTEM_CHOICE: Final = Interface(0, "of the system's choice", "0.0.0.0", True, False)


def lan_interfaces(host: str) -> list[Interface]:
    """Return the interfaces for a member that is bound to `host`.

    The hosts "", "0.0.0.0" and "::" stand for all interfaces, without loopback unless there is no other. An
    IPv4 host stands for the interface with this address, "::1" for loopback, any other for all.
    """
    interfaces = _all_up()
    if host in ("", "0.0.0.0", "::"):
        return [each for each in interfaces if not each.loopback] or interfaces
    if ":" in host:
        return [each for each in interfaces if each.loopback] if host == "::1" else interfaces
    return [each for each in interfaces if each.ipv4 == host] or interfaces


def _all_up() -> list[Interface]:
    """Return every multicast interface that is up, and loopback; not on Linux, the system's choice."""
    if not sys.platform.startswith("linux"):
        return [SYSTEM_CHOICE]
    interfaces = []
    ipv6 = _with_ipv6()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for index, name in socket.if_nameindex():
            answer = _ask(handle, _GET_FLAGS, name)
            flags = 0 if answer is None else struct.unpack_from("=H", answer, 16)[0]
            if not flags & _UP or not flags & (_MULTICAST | _LOOPBACK):
                continue
            answer = _ask(handle, _GET_ADDRESS, name)
            ipv4 = None if answer is None else socket.inet_ntoa(answer[20:24])
            if ipv4 is not None or index in ipv6:
                interfaces.append(Interface(index, name, ipv4, index in ipv6, bool(flags & _LOOPBACK)))
    return interfaces


def _ask(handle: socket.socket, question: int, name: str) -> bytes | None:
    """Ask the system about an interface; None if it has no answer, for example no IPv4 address."""
    import fcntl

    try:
        return fcntl.ioctl(handle, question, struct.pack("16s24x", name.encode()))
    except OSError:
        return None


def _with_ipv6() -> set[int]:
    try:
        lines = _IPV6_ADDRESSES.read_text(encoding="ascii").splitlines()
    except OSError:
        return set()
    return {int(line.split()[1], 16) for line in lines}
