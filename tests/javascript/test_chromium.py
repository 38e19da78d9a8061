"""Two tabs of Chromium and three Python members in one group, through restarts; a gateway that lies."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import precede
from precede.runtime.transports.websocket import WebSocketTransport
from tests.javascript.hostile import HostileLinks
from tests.javascript.members import (
    LOCAL,
    PACKAGE,
    ROOT,
    SEEDS,
    Taken,
    node_program,
    python_member,
    settings,
    until,
)

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

PAGES = {"/": ROOT / "examples" / "chat" / "page", "/javascript/": PACKAGE}
LINES = (
    *("Who brings bread?", "I do.", "White or rye?", "Rye, please.", "And I bring cheese."),
    *("Where do we meet?", "At the old bridge.", "Which side?", "The sunny one.", "I am on the bus."),
    *("", "We are two stops away.", "I can see the river.", "Save me a place."),
)
"""The eleventh is said while the gateway is away."""
SCREENSHOTS = ROOT / "out" / "screenshots"


def gateway(port: int = 0) -> WebSocketTransport:
    return WebSocketTransport(("127.0.0.1", port), pages=PAGES)


@asynccontextmanager
async def chromium() -> AsyncIterator[BrowserContext]:
    """A browser with one profile, of the size of a phone."""
    node_program()  # the libraries of the page
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium here; this installs it: apt-get install -y chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield await browser.new_context(viewport={"width": 390, "height": 844})
        await browser.close()


class Tab:
    """The chat in one tab. `wrong` has the errors of its console."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))

    @classmethod
    async def open(cls, context: BrowserContext, name: str, url: str, **more: str) -> Tab:
        tab = cls(await context.new_page())
        member = {key: value for key, value in settings(name, url).items() if key != "urls"} | more
        code = base64.urlsafe_b64encode(json.dumps(member).encode()).decode().rstrip("=")
        await tab.page.goto(url.replace("ws", "http", 1) + "/#" + code)
        await tab.page.wait_for_selector("#writing:not([hidden])")
        assert "#" not in tab.page.url, "the secrets have left the address bar"
        return tab

    async def say(self, line: str) -> None:
        await self.page.fill("#line", line)
        await self.page.press("#line", "Enter")

    async def messages(self) -> list[tuple[str, str]]:
        script = "all => all.map(each => ['b', '.text'].map(part => each.querySelector(part).textContent))"
        return [tuple(each) for each in await self.page.eval_on_selector_all(".message:not(.waiting)", script)]

    async def shows(self, expected: list[tuple[str, str]]) -> None:
        for _ in range(600):
            if await self.messages() == expected:
                return
            await asyncio.sleep(0.1)
        assert await self.messages() == expected, await self.page.inner_text("body")

    async def restart(self) -> None:
        await self.page.reload()
        await self.page.wait_for_selector("#writing:not([hidden])")


def test_two_tabs_and_three_python_members_through_a_restart_of_each(tmp_path: Path) -> None:
    """ana is the gateway; ben and cem are on UDP; dora and eva are tabs. Each answers what it has seen."""

    async def run() -> None:
        said: list[tuple[str, str]] = []
        taken: dict[str, Taken] = {}

        async def all_have(*members: Tab | str) -> None:
            for member in members:
                if isinstance(member, Tab):
                    await member.shows(said)
                else:
                    await until(lambda: taken[member].messages == said)  # noqa: B023

        async def talk(groups: list[precede.Group], dora: Tab, eva: Tab) -> None:
            for group in groups:
                said.append((group.name, LINES[len(said)]))
                await group.broadcast(said[-1][1].encode())
                await all_have(dora, eva, *(each.name for each in groups))
            for name, tab in (("dora", dora), ("eva", eva)):
                said.append((name, LINES[len(said)]))
                await tab.say(said[-1][1])
                await all_have(dora, eva, *(each.name for each in groups))

        async with chromium() as browser:
            udp, pages = precede.UdpTransport(LOCAL), gateway()
            async with python_member("ana", precede.CombinedTransport(udp, pages), tmp_path) as ana:
                url = pages.url
                taken["ana"] = Taken(ana)
                dora, eva = [await Tab.open(browser, name, url) for name in ("dora", "eva")]
                for _ in range(2):  # ben, cem and dora restart between the rounds
                    ben = python_member("ben", precede.UdpTransport(LOCAL, [udp.address]), tmp_path)
                    cem = python_member("cem", precede.UdpTransport(LOCAL, [udp.address]), tmp_path)
                    async with ben, cem:
                        taken |= {group.name: Taken(group, taken.get(group.name)) for group in (ben, cem)}
                        await talk([ana, ben, cem], dora, eva)
                        for name in ("ben", "cem"):
                            await taken[name].stop()
                    await dora.restart()
                    await dora.shows(said)
                old, eva = eva, await Tab.open(browser, "eva", url)
                await eva.shows(said)
                await old.page.wait_for_selector("#trouble:not([hidden])")
                assert "another tab has opened this member" in await old.page.inner_text("#trouble")
                await old.page.close()
                await taken["ana"].stop()
            said.append(("dora", "No network here."))
            await dora.say(said[-1][1])
            await dora.shows(said)
            again = precede.CombinedTransport(precede.UdpTransport(LOCAL), gateway(int(url.rpartition(":")[2])))
            async with python_member("ana", again, tmp_path) as ana:
                taken["ana"] = Taken(ana, taken["ana"])
                await all_have("ana", eva)
                await talk([ana], dora, eva)
                SCREENSHOTS.mkdir(parents=True, exist_ok=True)
                await dora.page.screenshot(path=SCREENSHOTS / "chat-phone-light.png")
                await dora.page.emulate_media(color_scheme="dark")
                await dora.page.screenshot(path=SCREENSHOTS / "chat-phone-dark.png")
                await taken["ana"].stop()
            assert dora.wrong == eva.wrong == []
        assert precede.verify(tmp_path / "log", order="causal").verdict == "unknown"  # the tabs write no log

    asyncio.run(run())


def test_a_hostile_gateway_cannot_forge_an_author_in_a_tab(tmp_path: Path) -> None:
    async def run() -> None:
        async with chromium() as browser:
            udp, pages = precede.UdpTransport(LOCAL), gateway()
            async with python_member("eva", precede.CombinedTransport(udp, pages), tmp_path) as bad:
                hostile = HostileLinks(bad, SEEDS["eva"])
                dora = await Tab.open(browser, "dora", pages.url)
                async with python_member("ana", precede.UdpTransport(LOCAL, [udp.address]), tmp_path) as ana:
                    taken = Taken(ana)
                    expected = []
                    for number in range(4):
                        await ana.broadcast(str(number).encode())
                        expected.append(("ana", str(number)))
                        await dora.shows(expected)
                    await dora.say("seen")
                    expected.append(("dora", "seen"))
                    await dora.shows(expected)
                    await until(lambda: len(taken.messages) == len(expected))
                    assert taken.messages == expected
                    await taken.stop()
                assert hostile.forgeries > 20
                assert dora.wrong == []

    asyncio.run(run())


def test_a_page_with_a_wrong_invitation_asks_for_another_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with chromium() as browser:
            pages = gateway()
            async with python_member("ana", pages, tmp_path):
                address = pages.url.replace("ws", "http", 1)
                page = await browser.new_page()
                for wrong, trouble in (("e30", "group: expected a text"), ("not-base64!", "no invitation")):
                    await page.goto(f"{address}/#{wrong}")
                    await page.reload()
                    await page.wait_for_selector("#invitation:not([hidden])")
                    assert trouble in await page.inner_text("#trouble")
                dora = await Tab.open(browser, "dora", pages.url)
                await dora.say("hello")
                await dora.shows([("dora", "hello")])
                assert await dora.page.is_hidden("#invitation")

    asyncio.run(run())
