"""Works at intervals: sends beacons, repeats handshakes, writes the event log, warns if nobody is heard."""

import asyncio
from collections.abc import Sequence
from typing import Final

from precede.core.errors import StoreFailed
from precede.runtime.deliveries import MemberState
from precede.runtime.driver import Driver
from precede.runtime.history.upkeep import Upkeep
from precede.runtime.links.neighbours import Links
from precede.runtime.notices import Notices
from precede.runtime.rows import SegmentWriter
from precede.runtime.settings import MemberSettings
from precede.runtime.transports.transport import Transport

_SESSION_TICK_S: Final = 0.05
_SILENT_BEACONS: Final = 8
"""After so many beacons without an answer the application learns that nobody is heard."""


class Ticking:
    """Runs the timed loops of a member: one for beacons and, with keys, one for handshakes."""

    def __init__(
        self,
        settings: MemberSettings,
        state: MemberState,
        driver: Driver,
        links: Sequence[Links],
        transport: Transport,
        segments: SegmentWriter | None,
        notices: Notices,
    ) -> None:
        self._settings = settings
        self._state = state
        self._driver = driver
        self._links = links
        self._transport = transport
        self._segments = segments
        self._notices = notices
        self._beacons = 0
        self._heard_somebody = settings.by_hand  # then links are opened by the program
        self._upkeep = Upkeep(driver.store, settings.retention, settings.log, notices, settings.clock)
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
            if self._segments is not None and self._segment_is_due(self._segments):
                self._driver.rows_logged = 0
                self._try_to_write(self._segments)
            self._keep_house()
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

    def _keep_house(self) -> None:
        try:
            self._upkeep.run()
        except StoreFailed as error:
            self._driver.fail(error)
        except OSError:
            self._driver.dropped["log_kept"] += 1  # a file of the event log could not be deleted now

    def _segment_is_due(self, segments: SegmentWriter) -> bool:
        if segments.time_is_due():
            self._driver.log_rows()
            return self._driver.rows_logged > 0
        return segments.rows_are_due(self._driver.rows_logged)

    def _try_to_write(self, segments: SegmentWriter) -> None:
        """Write a segment. If the folder cannot be written now, the rows stay in the store for the next try."""
        try:
            segments.write(self._driver.store)
        except StoreFailed as error:
            self._driver.fail(error)
        except OSError:
            self._driver.dropped["log_unwritten"] += 1
            self._driver.rows_logged += 1  # there is still something to write
