"""Notices which messages wait for others, for the listeners of `arrivals()`."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Waiting

_REST: Final = 20
"""After a look at all waiting messages there is none for so many times its length: a member that fills the
buffer of waiting messages must not make this one look at all of them for each further message."""


class WaitingNews:
    """Publishes each arrived message that waits, once, with what it waits for.

    `waiting` lists all messages that wait; one look is for all messages that arrived since the last one. A
    message that was delivered or given up meanwhile (`settled`) needs none.
    """

    def __init__(
        self,
        waiting: Callable[[], Sequence[Waiting]],
        publish: Callable[[Message, tuple[MessageId, ...]], None],
    ) -> None:
        self._waiting = waiting
        self._publish = publish
        self._arrived: dict[MessageId, Message] = {}
        self._is_due = False
        self._not_before = 0.0

    def arrived(self, message: Message) -> None:
        self._arrived[message.id] = message
        if not self._is_due:
            self._is_due = True
            pause = self._not_before - time.monotonic()
            asyncio.get_running_loop().call_later(max(0.0, pause), self._look)

    def settled(self, id: MessageId) -> None:
        self._arrived.pop(id, None)

    def _look(self) -> None:
        self._is_due = False
        if not self._arrived:
            return
        arrived, self._arrived = self._arrived, {}
        begin = time.monotonic()
        for item in self._waiting():
            if item.message in arrived:
                self._publish(arrived[item.message], item.waits_for)
        end = time.monotonic()
        self._not_before = end + _REST * (end - begin)
