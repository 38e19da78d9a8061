"""One lake, one site and one Chromium for all tests of pages; screenshots go to out/screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from precede.lake.layout import Lake
from precede.report.site import build_site
from tests.report.lakes import made_up_log, make_lake

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "out" / "screenshots"
LARGE, SMALL = "made-up-large", "made-up-small"


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    store = make_lake(tmp_path_factory.mktemp("site"))
    assert made_up_log(store, LARGE, 1961) >= 100_000
    assert made_up_log(store, SMALL, 20) >= 1_000
    return store


@pytest.fixture(scope="session")
def site(lake: Lake) -> Path:
    from precede.cli.data.report import protocol_cards

    papers = lake.root.parent / "papers"
    for key in ("prs1997", "was2021"):
        shutil.copytree(ROOT / "papers" / key, papers / key)
    return build_site(lake, lake.root.parent / "site", protocol_cards(), papers).front.parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for one test file: its event loop would disturb other tests that run their own."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium here; this installs it: apt-get install -y chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


class Watched:
    """A page that records its errors, warnings and network requests in `wrong`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("requestfailed", lambda request: self.wrong.append(f"failed: {request.url}"))
        page.on("request", self._request)

    def _console(self, entry: Any) -> None:
        if entry.type in ("error", "warning"):
            self.wrong.append(f"console: {entry.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.wrong.append(f"requested from the network: {request.url}")

    def open(self, path: Path, fragment: str = "") -> Page:
        """Open a file, and wait until the diagram of a run's page is drawn."""
        if fragment:
            self.page.goto("about:blank")
        self.page.goto(path.as_uri() + fragment)
        if self.page.locator("#diagram").count():
            self.page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
            self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page has drawn."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def keep(self, name: str, full: bool = False) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full)


@pytest.fixture(scope="module")
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True, accept_downloads=True)
    yield Watched(context.new_page())
    context.close()


@pytest.fixture(autouse=True)
def nothing_wrong(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose page reported an error."""
    if "watched" not in request.fixturenames:
        yield
        return
    watched: Watched = request.getfixturevalue("watched")
    watched.wrong.clear()
    watched.page.set_viewport_size({"width": 1200, "height": 900})
    watched.page.emulate_media(color_scheme="light", media="screen")
    yield
    assert not watched.wrong, watched.wrong
