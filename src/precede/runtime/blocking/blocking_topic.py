"""A conversation without `await`: what a group and a topic have in common, and a topic."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from precede.core.identity import MessageId
from precede.core.node import Waiting
from precede.runtime.blocking.blocking_iterator import BlockingIterator
from precede.runtime.blocking.loop_thread import LoopThread
from precede.runtime.deliveries import Arrival, Delivered
from precede.runtime.group import Group
from precede.runtime.topics.topic import Topic

T = TypeVar("T")


class Conversation:
    """Broadcasts and takes the messages of a group or a topic, which live in the thread of the loop."""

    def __init__(self, thread: LoopThread, conversation: Group | Topic) -> None:
        self._thread = thread
        self._conversation = conversation
        self._messages: BlockingIterator[Delivered] = BlockingIterator(thread, aiter(conversation))

    @property
    def name(self) -> str:
        """The name of the topic; for a group, this member's name."""
        return self._conversation.name

    def broadcast(self, payload: bytes, lifetime: str | timedelta | None = None) -> None:
        """Send a message, and wait as `Group.broadcast` does. Raises what it raises."""
        self._thread.run(self._conversation.broadcast(payload, lifetime))

    def messages(self, timeout: float | None = None) -> Iterator[Delivered]:
        """Yield delivered messages in order, until none came for `timeout` seconds. None: wait for ever.

        Requesting the next message acknowledges the previous one. A later call continues where this one ended.
        """
        return self._messages.until_quiet(timeout)

    def arrivals(self, timeout: float | None = None) -> Iterator[Arrival]:
        """Yield news of messages, as `Group.arrivals` does, until none came for `timeout` seconds."""
        return self._listen(self._conversation.arrivals, timeout)

    def waiting(self) -> Sequence[Waiting]:
        """Return the received messages that are not delivered: what each waits for, since and until when."""
        return self._thread.call(self._conversation.waiting)

    def history(
        self,
        *,
        since: Delivered | MessageId | int | datetime | timedelta | str | None = None,
        source: str | None = None,
        limit: int | None = None,
    ) -> list[Delivered]:
        """Return the delivered messages that are kept, as `Group.history` does, in a list."""
        read = self._conversation.history
        return self._thread.call(lambda: list(read(since=since, source=source, limit=limit)))

    def _listen(self, subscribe: Callable[[], AsyncGenerator[T, None]], timeout: float | None) -> Iterator[T]:
        feed = self._thread.call(subscribe)
        return BlockingIterator(self._thread, feed).until_quiet(timeout)


class BlockingTopic(Conversation):
    """A topic without `await`, from `BlockingGroup.topic`.

    >>> import precede
    >>> with precede.open_group("house", "ana", key=None) as group:
    ...     garden = group.topic("garden", order="fifo")
    ...     garden.broadcast(b"the roses need water")
    ...     print(next(garden.messages(timeout=5)).payload)
    b'the roses need water'
    """

    _conversation: Topic

    @property
    def order(self) -> str:
        """The order of the topic's messages."""
        return self._conversation.order

    def close(self) -> None:
        """End this topic at this member, as `Topic.close` does."""
        self._thread.call(self._conversation.close)
