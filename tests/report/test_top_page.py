"""The live page of a group in Chromium: it shows members and who hears whom, and no name runs a script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from precede.cli.field.top_look import Looker, _pages
from precede.runtime.observe.endpoint import Endpoint
from precede.runtime.observe.overview import Followed, MemberRow, Overview, Wait
from tests.report.conftest import SCREENSHOTS
from tests.report.test_hostile_names import HIT, SCRIPTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def served(shown: Overview) -> Iterator[str]:
    """Serve the page of an overview from a thread, because the browser blocks this one."""
    looker = Looker([], None)
    looker.latest = shown
    endpoint = Endpoint(("127.0.0.1", 0), _pages(looker))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(endpoint.start(), loop).result()
        yield f"http://127.0.0.1:{endpoint.address[1]}/"
    finally:
        asyncio.run_coroutine_threadsafe(endpoint.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def group(*names: str) -> Overview:
    first = names[0]
    rows = [
        MemberRow(f"127.0.0.1:{9100 + place}", group="g", member=name, order="causal", hears=[first], lag=place)
        for place, name in enumerate(names)
    ]
    rows.append(MemberRow("127.0.0.1:9999", problem=f"not reachable: {first}"))
    waits = [(first, Wait(f"{first}:2", [f"{names[-1]}:1"], 75.0))]
    followed = Followed("causal", 10, 5, 0, [], {"causal": 2}, [f"causal violation: {first} delivered early"])
    return Overview(rows, waits, followed)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_shows_the_group(browser: Browser, width: int, scheme: str) -> None:
    wrong: list[str] = []
    with served(group("ana", "ben", "cem")) as url:
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.on(
            "request",
            lambda request: None if request.url.startswith((url, "data:")) else wrong.append(request.url),
        )
        page.goto(url)
        page.wait_for_selector("#members tbody tr")
        assert page.locator("#members tbody tr").count() == 4
        assert page.locator("#hearing td.heard").count() == 2
        assert "ana:2" in page.inner_text("#waits")
        assert page.inner_text("#verdict") == "causal order, 5 deliveries verified: 2 causal violations."
        assert page.inner_text("#state").startswith("3 of 4 members answer.")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(SCREENSHOTS / f"top-{width}.png"), full_page=True)
        page.close()
    assert wrong == []


def test_hostile_names_run_no_script_on_the_live_page(browser: Browser) -> None:
    with served(group(*SCRIPTS)) as url:
        page = browser.new_page()
        page.add_init_script(HIT)
        page.goto(url)
        page.wait_for_selector("#members tbody tr")
        assert SCRIPTS[0] in page.inner_text("#members")
        assert page.evaluate("window.hits") == 0
        policy = page.evaluate("fetch('/').then((answer) => answer.headers.get('Content-Security-Policy'))")
        assert "default-src 'none'" in policy
        page.close()
