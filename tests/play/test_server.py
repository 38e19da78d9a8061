"""The server of play: what it answers, and that neither another page nor a wrong request can drive the game."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from precede.core.errors import BadInput
from precede.play.game import Game
from precede.play.server import OWN, POLICY, SHARED, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(Game(None, tmp_path_factory.mktemp("played"), "causal"))
    thread = Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join(10)


def ask(
    server: Server, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, path, data, headers or {})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    return response.status, dict(response.getheaders()), answer


def do(server: Server, **request: Any) -> Any:
    status, _, answer = ask(server, "POST", f"/{server.token}/api", request)
    return status, json.loads(answer)


def test_it_serves_the_page_and_its_files_with_a_policy(server: Server) -> None:
    status, headers, page = ask(server, "GET", f"/{server.token}/")
    assert status == 200
    assert headers["Content-Security-Policy"] == POLICY
    assert b"<script>" not in page
    assert b"style=" not in page
    for name in (*SHARED, *OWN):
        status, headers, _ = ask(server, "GET", f"/{server.token}/assets/{name}")
        assert status == 200
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_game_is_played_over_it(server: Server) -> None:
    status, answer = do(server, do="open", lesson="causal")
    assert status == 200
    assert answer["hello"]["nodes"] == ["0", "1", "2", "3"]
    status, answer = do(server, do="input", input={"action": "say", "node": "0", "text": "hi"})
    assert (status, answer["reasons"]) == (200, [])
    status, answer = do(server, do="advance", us=3_000_000)
    assert answer["frame"]["now"] == 3_000_000
    assert answer["frame"]["sides"]["ordered"]["counts"]["delivered"] == 4
    status, state = do(server, do="state")
    assert state["frame"]["now"] == 3_000_000
    assert state["frame"]["sides"]["ordered"]["texts"] == {"0:1": "hi"}
    status, saved = do(server, do="save")
    assert saved["verdicts"]["ordered"]["verdict"] == "holds"
    assert (Path(saved["folder"]) / "inputs.json").is_file()
    status, again = do(server, do="again")
    assert again["frame"]["now"] == 0


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        ({"do": "jump"}, "not a request"),
        ({"do": "advance", "us": -1}, "advance: us"),
        ({"do": "advance", "us": 10**18}, "advance: us"),
        ({"do": "advance", "us": "x"}, "not a request"),
        ({"do": "input"}, "nothing to do"),
        ({"do": "input", "input": {"action": "say", "node": "nobody"}}, "no node 'nobody'"),
        ({"do": "open", "lesson": "../../x"}, "no lesson"),
        ({"do": "again", "seed": -1}, "seed"),
        ({"do": "save", "folder": "/etc"}, "not a request"),
    ],
)
def test_a_wrong_request_is_answered_with_its_cause(server: Server, request_: Any, cause: str) -> None:
    status, answer = do(server, **request_)
    assert status == 400
    assert cause in answer["error"]


def test_only_who_knows_the_address_gets_in(server: Server) -> None:
    ours = {"Host": f"127.0.0.1:{server.port}"}
    body = {"do": "advance", "us": 1}
    for path in ("/", "/api", "/x/api", f"/{server.token}x/api", "//api", "/%00/api"):
        assert ask(server, "POST", path, body, ours)[0] == 404
        assert ask(server, "GET", path, None, ours)[0] == 404
    for path in ("assets/../server.py", "assets/%2e%2e/server.py", "assets/", "assets/x.js", "play.html"):
        assert ask(server, "GET", f"/{server.token}/{path}")[0] == 404
    api = f"/{server.token}/api"
    assert ask(server, "POST", api, body, {"Host": "evil.example"})[0] == 404
    assert ask(server, "POST", api, body, {"Origin": "http://evil.example"})[0] == 403
    assert ask(server, "POST", api, body, {"Origin": "null"})[0] == 403
    assert ask(server, "POST", api, body, {"Origin": f"http://127.0.0.1:{server.port}"})[0] == 200


def test_bodies_are_bounded(server: Server) -> None:
    assert ask(server, "POST", f"/{server.token}/api", b"x" * 70_000)[0] == 413
    assert ask(server, "POST", f"/{server.token}/api", b"", {"Content-Length": "-5"})[0] == 413
    assert ask(server, "POST", f"/{server.token}/api", b"[" * 60_000)[0] == 400


def test_a_port_in_use_is_one_line(server: Server) -> None:
    with pytest.raises(BadInput, match=f"port {server.port}: Address already in use"):
        Server(server.game, server.port)
    with pytest.raises(BadInput, match="port 99999"):
        Server(server.game, 99_999)


def test_a_folder_that_cannot_be_written_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    before, server.game.out = server.game.out, tmp_path / "file" / "played"
    status, answer = do(server, do="save")
    server.game.out = before
    assert status == 500
    assert answer["error"].startswith(f"{tmp_path / 'file'}")
    assert do(server, do="advance", us=1)[0] == 200
