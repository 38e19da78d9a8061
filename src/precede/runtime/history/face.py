"""The part of `Group` that reads what the member has delivered, and gives it to others."""

from __future__ import annotations

from datetime import datetime, timedelta

from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.runtime.deliveries import Delivered, Deliveries, Describer, MemberState
from precede.runtime.driver import Driver
from precede.runtime.history.kept import KeptMessages
from precede.runtime.history.reading import History
from precede.runtime.links.neighbours import Links
from precede.runtime.membership import Membership
from precede.runtime.names import MemberNames
from precede.runtime.notices import Notices
from precede.runtime.settings import MemberSettings
from precede.runtime.transfer.transfer import Transfer


class HistoryFace:
    """Gives a group its method `history` and its state transfer."""

    _state: MemberState
    _driver: Driver
    _names: MemberNames
    _describe: Describer
    _deliveries: Deliveries
    _settings: MemberSettings
    _membership: Membership
    _links: Links
    _notices: Notices
    group: str

    def history(
        self,
        *,
        since: Delivered | MessageId | int | datetime | timedelta | str | None = None,
        source: str | None = None,
        limit: int | None = None,
    ) -> History:
        """Return the messages that this member has delivered and still keeps, in the order of delivery.

        * `since`: only those after a message, its id or its place; from a datetime on; or of the last "2h".
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

    def _new_transfer(self) -> Transfer:
        return Transfer(
            *(self.group, self._settings, self._names, self._state, self._driver, self._deliveries),
            *(self._membership.authors, self._links, self._notices),
        )

    def _kept(self) -> KeptMessages:
        self._state.check_open()
        with self._driver.failing():
            return self._driver.store.history()
