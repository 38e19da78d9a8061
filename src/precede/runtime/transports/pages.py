"""Files that a member serves over HTTP beside its WebSocket: the page of an application and its scripts."""

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_MOST_BYTES: Final = 1 << 22
Page = tuple[HTTPStatus, dict[str, str], bytes]


def page_at(folders: Mapping[str, Path], target: str) -> Page:
    """Return status, headers and content for the target of a GET request.

    `folders` maps the beginning of a path ("/", "/javascript/") to a folder; the longest that fits counts. Only
    regular files of known types below the folder are served, links are not followed out of it.
    """
    path = unquote(target.partition("?")[0], errors="replace")
    prefixes = sorted((prefix for prefix in folders if path.startswith(prefix)), key=len)
    if prefixes and "\0" not in path:
        folder = folders[prefixes[-1]].resolve()
        rest = path[len(prefixes[-1]) :] or "index.html"
        with suppress(OSError):  # a name that is too long, a file that is deleted meanwhile
            file = (folder / rest.lstrip("/")).resolve()
            kind = _TYPES.get(file.suffix)
            if kind and file.is_relative_to(folder) and file.is_file() and file.stat().st_size <= _MOST_BYTES:
                return HTTPStatus.OK, {"Content-Type": kind, "Cache-Control": "no-cache"}, file.read_bytes()
    text = {"Content-Type": "text/plain; charset=utf-8"}
    return HTTPStatus.NOT_FOUND, text, b"there is no such page here\n"
