"""The page of `precede top`: fixed files and a script that writes names as text, never as markup."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content-security policy of the page: nothing from elsewhere, no inline script, no inline style."""

_FILES: Final = {
    "/": ("live/top.html", "text/html; charset=utf-8"),
    "/top.js": ("live/top.js", "text/javascript; charset=utf-8"),
    "/top.css": ("live/top.css", "text/css; charset=utf-8"),
    "/style.css": ("assets/style.css", "text/css; charset=utf-8"),
}


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return the content type and the bytes of each file of the page, by its path."""
    folder = files("precede.report")
    return {path: (kind, folder.joinpath(name).read_bytes()) for path, (name, kind) in _FILES.items()}
