"""Looks at a running group again and again, and shows each look: on a terminal, as JSON, or on a page."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Final

import msgspec

from precede.cli.field import top_screen
from precede.core.errors import Unavailable
from precede.report.live.page import POLICY, page_files
from precede.runtime.observe.endpoint import Answer, Endpoint
from precede.runtime.observe.exposition import CONTENT_TYPE, to_text
from precede.runtime.observe.families import Family, labelled, single
from precede.runtime.observe.overview import Followed, Overview, fetch_status, overview
from precede.witness.live.folder import FolderFollower

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_REDRAW: Final = "\x1b[H"
_LINE_END: Final = "\x1b[K\n"
_BELOW: Final = "\x1b[J"
_STORIES: Final = 2


class Looker:
    """Asks members for their status and a follower for violations. `latest` is the last look."""

    def __init__(self, members: Sequence[tuple[str, int]], follower: FolderFollower | None) -> None:
        self.latest = Overview([], [])
        self.follower = follower
        self._members = members
        self._looked_at = 0.0

    async def look(self, once: bool = False) -> Overview:
        """Ask all members at once, read new segments of the log, and put everything side by side.

        A look that is the only one (`once`) reads all segments, others a part of them.
        """
        answers = await asyncio.gather(*(fetch_status(address) for address in self._members))
        if self.follower is not None:
            await asyncio.to_thread(self.follower.poll)
            while once and self.follower.unread:
                await asyncio.to_thread(self.follower.poll)
        now, earlier = time.monotonic(), self._looked_at
        statuses = {f"{host}:{port}": one for (host, port), one in zip(self._members, answers, strict=True)}
        seconds = now - earlier if earlier else 0.0
        self.latest = overview(statuses, self.latest, seconds, self._followed())
        self._looked_at = now
        return self.latest

    def _followed(self) -> Followed | None:
        follower = self.follower
        if follower is None:
            return None
        latest = [f"{each.kind} violation: {each.story}" for each in follower.stories[-_STORIES:]]
        counts = dict(sorted(follower.counts.items()))
        numbers = (follower.rows, follower.deliveries, follower.waiting, follower.waits_for[:_STORIES])
        return Followed(follower.order, *numbers, counts, latest)

    def group(self) -> Answer:
        """Return the last look for the page."""
        return Answer("application/json", msgspec.json.encode(self.latest))

    def metrics(self) -> Answer:
        """Return what the follower found, for Prometheus."""
        return Answer(CONTENT_TYPE, to_text(self.families()).encode())

    def families(self) -> list[Family]:
        """Return the metrics of the follower, under the names that `precede verify --follow` has."""
        follower = self.follower
        if follower is None:
            return []
        counts: dict[str, float] = {follower.order: 0.0, **follower.counts}
        return [
            single("precede_follow_rows_total", "counter", "rows of the log", follower.rows),
            single("precede_follow_deliveries_total", "counter", "deliveries judged", follower.deliveries),
            labelled("precede_follow_violations_total", "counter", "violations", "kind", counts),
            single("precede_follow_runs", "gauge", "groups seen so far", len(follower.groups)),
            single("precede_follow_rows_waiting", "gauge", "rows that wait for others", follower.waiting),
        ]


async def watch(
    looker: Looker,
    every: float,
    once: bool,
    as_json: bool,
    page: tuple[str, int] | None,
    metrics: tuple[str, int] | None,
) -> None:
    """Look every so many seconds until Ctrl-C; `once` ends after the first look."""
    endpoints = []
    if page is not None:
        endpoints.append(Endpoint(page, _pages(looker)))
    if metrics is not None:
        endpoints.append(Endpoint(metrics, {"/metrics": looker.metrics}))
    for endpoint in endpoints:
        await endpoint.start()
    if page is not None:
        host, port = endpoints[0].address
        print(f"the group is shown on http://{host}:{port}/ (Ctrl-C ends it)", file=sys.stderr, flush=True)
    live = sys.stdout.isatty() and not (once or as_json or page)
    redraw = asyncio.Event()
    try:
        with _screen(redraw) if live else nullcontext():
            while True:
                look = await looker.look(once)
                if page is None:
                    _show(look, live, as_json)
                if once:
                    _check_answers(look)
                    return
                await _pause(every, redraw, lambda: _show(looker.latest, live, as_json))
    finally:
        for endpoint in endpoints:
            await endpoint.stop()


def _pages(looker: Looker) -> dict[str, Callable[[], Answer]]:
    headers = {"Content-Security-Policy": POLICY}
    pages: dict[str, Callable[[], Answer]] = {
        path: partial(Answer, kind, content, headers) for path, (kind, content) in page_files().items()
    }
    return {**pages, "/group": looker.group}


async def _pause(seconds: float, redraw: asyncio.Event, show: Callable[[], None]) -> None:
    """Wait for the next look. When the terminal changes its size, show the last one again."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        try:
            await asyncio.wait_for(redraw.wait(), left)
        except TimeoutError:
            return
        redraw.clear()
        show()


def _check_answers(look: Overview) -> None:
    if look.members and all(row.problem for row in look.members):
        first = look.members[0]
        raise Unavailable(f"no member answers: {first.address}: {first.problem}")


def _show(look: Overview, live: bool, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(look).decode(), flush=True)
        return
    place = shutil.get_terminal_size((110, 40))
    if live:
        title = f"precede top  {time.strftime('%H:%M:%S')}"
        text = [title, *top_screen.lines(look, place.columns, place.lines - 2)]
        sys.stdout.write(_REDRAW + "".join(line + _LINE_END for line in text) + _BELOW)
        sys.stdout.flush()
    else:
        print("\n".join(top_screen.lines(look, place.columns)), flush=True)


@contextmanager
def _screen(redraw: asyncio.Event) -> Iterator[None]:
    """Use the terminal's second screen, and notice when its size changes; at the end the first one is back."""
    loop = asyncio.get_running_loop()
    sys.stdout.write(_ENTER)
    loop.add_signal_handler(signal.SIGWINCH, redraw.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
