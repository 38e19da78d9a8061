"""The part of `Group` that reads what the member has delivered."""

from __future__ import annotations

from datetime import datetime, timedelta

from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.runtime.deliveries import Delivered, Describer, MemberState
from precede.runtime.driver import Driver
from precede.runtime.history.kept import KeptMessages
from precede.runtime.history.reading import History
from precede.runtime.names import MemberNames


class HistoryFace:
    """Gives a group its method `history`."""

    _state: MemberState
    _driver: Driver
    _names: MemberNames
    _describe: Describer

    def history(
        self,
        *,
        since: Delivered | MessageId | datetime | timedelta | str | None = None,
        source: str | None = None,
        limit: int | None = None,
    ) -> History:
        """Return the messages that this member has delivered and still keeps, in the order of delivery.

        * `since`: only those after a message (or its id), or from a datetime on, or of the last "2h".
        * `source`: only those of one sender.
        * `limit`: at most so many: with `since` the first ones after it, without it the last ones.

        `retention` of `join` says how many are kept, `History.evicted` how many are gone
        (docs/guides/history.md).
        """
        self._state.check_open()
        if source is not None and source not in self._names:
            raise BadInput(f"source: no member is known by the name {source!r}")
        node = None if source is None else self._names.id_of(source)
        return History(self._kept, self._driver.store.last_place, self._describe, since, node, limit)

    def _kept(self) -> KeptMessages:
        self._state.check_open()
        with self._driver.failing():
            return self._driver.store.history()
