"""The local server of a game: the page and its files, and one address that answers requests.

It listens on the loopback address only. Every path begins with a secret token, and a request must name this
server as its host: another page in the same browser knows neither, so it can neither read nor drive the game.
"""

from __future__ import annotations

import sys
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from secrets import token_urlsafe
from typing import Any, Final

import msgspec

from precede.core.errors import BadInput
from precede.play.game import Game

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SHARED: Final = ("style.css", "model.js", "diagram.js")
"""Files that the pages of reports use too."""
OWN: Final = ("play.css", "growing.js", "stage.js", "words.js", "panel.js", "play.js")
PAGE: Final = "play.html"
_LARGEST_BODY: Final = 1 << 16
_IDLE_S: Final = 60
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "json": "application/json"}


def asset(name: str) -> bytes:
    """Return one of the page's files."""
    package = "precede.report" if name in SHARED else "precede.play"
    return (files(package) / "assets" / name).read_bytes()


class Server(ThreadingHTTPServer):
    """Serves one game at `url`. `serve_forever` runs it, `shutdown` in another thread ends it."""

    daemon_threads = True

    def __init__(self, game: Game, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise BadInput(f"port {port}: {getattr(error, 'strerror', None) or error}") from error
        self.game = game
        self.token = token_urlsafe(18)
        self.port = int(self.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/{self.token}/"
        self.hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong with a request, unless its page was closed before it was answered."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of the page."""

    server: Server
    server_version = "precede"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S

    def do_GET(self) -> None:
        """Send the page or one of its files."""
        path = self._allowed_path()
        if path == "":
            self._send(HTTPStatus.OK, asset(PAGE), "html")
        elif path is not None and path.startswith("assets/") and path[7:] in (*SHARED, *OWN):
            self._send(HTTPStatus.OK, asset(path[7:]), path.rpartition(".")[2])
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Carry out one request of the page."""
        self.close_connection = True  # unless the body was read, it would be taken for the next request
        if self._allowed_path() != "api":
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > _LARGEST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))
        self.close_connection = False
        try:
            answer = self.server.game.answer(body)
        except BadInput as error:
            self._send(HTTPStatus.BAD_REQUEST, msgspec.json.encode({"error": str(error)}), "json")
            return
        except OSError as error:  # a folder that cannot be written, a full disk
            cause = f"{error.filename}: {error.strerror}"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, msgspec.json.encode({"error": cause}), "json")
            return
        self._send(HTTPStatus.OK, msgspec.json.encode(answer), "json")

    def _allowed_path(self) -> str | None:
        """Return the path after the token; None if host or token are not those of this server."""
        if self.headers.get("Host") not in self.server.hosts:
            return None
        _, _, path = self.path.partition("/")
        token, slash, rest = path.partition("?")[0].partition("/")
        known = compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        return rest if known and slash else None

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(status, msgspec.json.encode({"error": status.phrase}), "json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{_TYPES[kind]}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no line per request: the terminal shows the address, and errors as answers."""
