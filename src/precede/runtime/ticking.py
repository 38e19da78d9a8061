"""Works at intervals: sends beacons, repeats handshakes, writes the event log, warns if nobody is heard."""

import asyncio
from collections.abc import Sequence
from typing import Final

from precede.runtime.deliveries import MemberState
from precede.runtime.history.housekeeping import Housekeeping
from precede.runtime.links.neighbours import Links
from precede.runtime.notices import Notices
from precede.runtime.settings import MemberSettings
from precede.runtime.transports.transport import Transport

_SESSION_TICK_S: Final = 0.05
_SILENT_BEACONS: Final = 8
"""After so many beacons without an answer the application learns that nobody is heard."""


class Ticking:
    """Runs the timed loops of a member: one for beacons and, with keys, one for handshakes.

    `housekeeping` is what has to be done now and then for each store; more may be added.
    """

    def __init__(
        self,
        settings: MemberSettings,
        state: MemberState,
        links: Sequence[Links],
        transport: Transport,
        housekeeping: Sequence[Housekeeping],
        notices: Notices,
    ) -> None:
        self._settings = settings
        self._state = state
        self._links = links
        self._transport = transport
        self._housekeeping = housekeeping
        self._notices = notices
        self._beacons = 0
        self._heard_somebody = settings.by_hand  # then links are opened by the program
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._tick()))
        if self._settings.keys:
            self._tasks.append(loop.create_task(self._tick_sessions()))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    async def _tick(self) -> None:
        while self._state.failure is None:
            for links in self._links:
                links.tick()
            self._look_for_neighbours()
            for each in self._housekeeping:
                each.run()
            await asyncio.sleep(self._settings.beacon)

    async def _tick_sessions(self) -> None:
        while self._state.failure is None:
            for links in self._links:
                links.tick_sessions()
            await asyncio.sleep(_SESSION_TICK_S * self._transport.pace)

    def _look_for_neighbours(self) -> None:
        """Say once that nobody is heard, unless a more exact warning was given already."""
        self._beacons += 1
        if self._heard_somebody or self._beacons > _SILENT_BEACONS:
            return
        self._heard_somebody = any(links.neighbours() for links in self._links)
        if not self._heard_somebody and self._beacons == _SILENT_BEACONS and not len(self._notices):
            self._notices.give("nobody_heard", self._transport.why_silent())
