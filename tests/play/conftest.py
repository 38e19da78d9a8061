"""A game on a page: a server of its own for each test, and a browser that notes what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from precede.experiments.run import Run
from precede.play.game import Game
from precede.play.server import Server
from tests.report.conftest import SCREENSHOTS, browser  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_MS = 90_000
"""A loaded machine may take long; a test never depends on how long."""


class Table:
    """Opens games on pages; `wrong` has everything that a page complained about."""

    def __init__(self, browser: Browser, folder: Path) -> None:  # noqa: F811
        self.folder, self.wrong = folder, []
        self._browser = browser
        self._servers: list[Server] = []
        self._contexts: list[Any] = []

    wrong: list[str]

    def page(self, width: int = 1280, height: int = 900, scheme: Any = "light") -> Page:
        context = self._browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on(
            "console",
            lambda entry: self.wrong.append(entry.text) if entry.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        return page

    def play(self, lesson: str | None = None, run: Run | None = None, **look: Any) -> Page:
        server = Server(Game(run, self.folder / "played", lesson))
        self._servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        page = self.page(**look)
        page.goto(server.url)
        page.wait_for_function("() => window.precedeGame && precedeGame.frame && precedeGame.stages.ordered.at")
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def table(browser: Browser, tmp_path: Path) -> Iterator[Table]:  # noqa: F811
    made = Table(browser, tmp_path)
    yield made
    made.close()
    assert not made.wrong, made.wrong


def keep(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"play-{name}.png")
