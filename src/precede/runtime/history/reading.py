"""What `Group.history` returns: delivered messages, read from the store a page at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from precede.core.errors import BadInput
from precede.core.identity import MessageId, NodeId
from precede.core.instants import parse_duration
from precede.runtime.deliveries import Delivered
from precede.runtime.history.kept import Kept, KeptMessages

PAGE: Final = 256


class History:
    """Delivered messages in the order of their delivery, from `Group.history`. Iterate over it, also twice.

    Messages are read a few hundred at a time, so a long history needs little memory. Messages that are
    delivered while it is read are read too.

    `evicted` is how many messages this member has delivered and keeps no longer, and `first` the place of the
    first one that it keeps, which is `evicted + 1`. `complete` is False if requested messages are evicted.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     two = precede.Retention(messages=2)
    ...     async with precede.join("picnic", "ana", key=None, retention=two) as group:
    ...         for text in (b"bread", b"cheese", b"wine"):
    ...             await group.broadcast(text)
    ...         history = group.history()
    ...         print([message.payload for message in history], history.evicted, history.complete)
    >>> asyncio.run(main())
    [b'cheese', b'wine'] 1 False
    """

    def __init__(
        self,
        open_kept: Callable[[], KeptMessages],
        last_place: int,
        describe: Callable[[Kept], Delivered],
        since: Delivered | MessageId | int | datetime | timedelta | str | None,
        source: NodeId | None,
        limit: int | None,
    ) -> None:
        if limit is not None and (type(limit) is not int or limit < 0):
            raise BadInput(f"limit: expected 0 or more, or None, got {limit!r}")
        kept = open_kept()
        self._open_kept = open_kept
        self._describe = describe
        self._source = source
        self._limit = limit
        self.first = kept.first() or last_place + 1
        self.evicted = self.first - 1
        self._after = _place_before(kept, since)
        if since is None:
            self._after = 0 if limit is None else kept.place_of_last(limit, source)
        self.complete = self._after >= self.evicted

    def __iter__(self) -> Iterator[Delivered]:
        place, left = self._after, self._limit
        while left is None or left > 0:
            page = self._open_kept().read(place, PAGE if left is None else min(PAGE, left), self._source)
            for kept in page:
                yield self._describe(kept)
            if len(page) < PAGE:
                return
            place = page[-1].place
            left = None if left is None else left - len(page)


def _place_before(
    kept: KeptMessages, since: Delivered | MessageId | int | datetime | timedelta | str | None
) -> int:
    """Return the place behind which the requested messages begin."""
    match since:
        case None:
            return 0
        case Delivered():
            return since.place
        case int() if not isinstance(since, bool) and since >= 0:
            return since
        case MessageId():
            return _place_of(kept, since)
        case datetime():
            if since.tzinfo is None:
                raise BadInput("since: a datetime without a time zone; write datetime.now(timezone.utc)")
            return kept.place_at(int(since.timestamp() * 1_000_000))
        case timedelta():
            return kept.place_at(time.time_ns() // 1_000 - since // timedelta(microseconds=1))
        case str():
            try:
                return kept.place_at(time.time_ns() // 1_000 - parse_duration(since))
            except BadInput as error:
                raise BadInput(f"since: {error}") from None
    raise BadInput(
        f"since: expected a message, its id or place, a datetime or a duration such as '2h', got {since!r}"
    )


def _place_of(kept: KeptMessages, id: MessageId) -> int:
    """Return the place of a message; 0 if it is not kept, so that everything that is kept follows."""
    place = 0
    while page := kept.read(place, PAGE, id.source):
        for each in page:
            if each.message.id == id:
                return each.place
        place = page[-1].place
    return 0
