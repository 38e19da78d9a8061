"""Addresses of members, and the checks of those that a person has typed."""

from __future__ import annotations

from typing import Any, TypeAlias
from urllib.parse import urlsplit

from precede.core.errors import BadInput

Address: TypeAlias = tuple[str, int]


def check_address(setting: str, address: object) -> None:
    """Raise BadInput if this is not a host and a port. The host may be a name, or "" for every interface."""
    match address:
        case (str(), int(port)) if 0 <= port <= 65535:
            return
    raise BadInput(f'{setting}: expected an address such as ("10.0.0.7", 5001), got {address!r}')


def check_url(url: Any) -> None:
    """Raise BadInput if this is not the URL of a WebSocket."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("ws", "wss") and parts.hostname and parts.port != 0 and not parts.fragment:
            return
    except (ValueError, TypeError, AttributeError):
        pass  # not a text, or a port beyond 65535
    raise BadInput(f"peers: expected a URL such as 'ws://10.0.0.7:8080', got {url!r}")
