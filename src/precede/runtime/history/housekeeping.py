"""What has to be done now and then for a driver and its store: write the event log, evict what is old."""

from precede.core.errors import StoreFailed
from precede.runtime.driver import Driver
from precede.runtime.history.upkeep import Upkeep
from precede.runtime.notices import Notices
from precede.runtime.rows import SegmentWriter
from precede.runtime.settings import MemberSettings


class Housekeeping:
    """The housekeeping of one driver. `segments` is None if there is no event log."""

    def __init__(
        self, driver: Driver, segments: SegmentWriter | None, settings: MemberSettings, notices: Notices
    ) -> None:
        self._driver = driver
        self.segments = segments
        self._upkeep = Upkeep(driver.store, settings.retention, settings.log, notices, settings.clock)

    def run(self) -> None:
        """Do what is due."""
        if self.segments is not None and self._segment_is_due(self.segments):
            self._driver.rows_logged = 0
            self._try_to_write(self.segments)
        try:
            self._upkeep.run()
        except StoreFailed as error:
            self._driver.fail(error)
        except OSError:
            self._driver.dropped["log_kept"] += 1  # a file of the event log could not be deleted now

    def finish(self) -> None:
        """Write the rows that are in no file yet: the driver has stopped."""
        if self.segments is not None:
            self.segments.write(self._driver.store)

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
