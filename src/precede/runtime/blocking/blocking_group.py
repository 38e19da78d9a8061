"""A group without `await`."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

from precede.runtime.blocking.blocking_topic import BlockingTopic, Conversation
from precede.runtime.blocking.loop_thread import LoopThread
from precede.runtime.group import Group
from precede.runtime.presence.group_event import GroupEvent
from precede.runtime.topics.lane_plan import TopicOrder


class BlockingGroup(Conversation):
    """A member of a group for scripts and notebooks, made by `precede.open_group`. Use it with `with`.

    It is a `Group` whose event loop runs in a thread of its own, so it works also where a loop is running
    already, as in Jupyter. There, use it without `with`, and `close` it in a later cell. Calls block; Ctrl-C
    ends a wait. It behaves as `Group` does: with a store, a message in hand when the `with` block raises is
    delivered again after a restart. Use one thread at a time.

    >>> import precede
    >>> with precede.open_group("picnic", "ana", key=None) as group:
    ...     group.broadcast(b"who brings bread?")
    ...     for message in group.messages(timeout=1.0):
    ...         print(message.source, message.payload)
    ana b'who brings bread?'
    """

    _conversation: Group

    def __init__(self, join: Callable[[], Group]) -> None:
        thread = LoopThread("precede")

        async def enter() -> Group:
            return await join().__aenter__()

        try:
            super().__init__(thread, thread.run(enter()))
        except BaseException:
            thread.stop()
            raise
        atexit.register(self.close)

    def __enter__(self) -> BlockingGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave_block(kind)

    def close(self) -> None:
        """Stop this member. With a store, the next `open_group` continues where it stopped."""
        self._leave_block(None)

    def _leave_block(self, kind: type[BaseException] | None) -> None:
        atexit.unregister(self.close)
        if not self._thread.is_stopped:
            try:
                self._thread.run(self._conversation.__aexit__(kind))
            finally:
                self._thread.stop()

    def multicast(self, payload: bytes, to: Sequence[str], lifetime: str | timedelta | None = None) -> None:
        """Send a message to the named members only, in a group with order="multicast"."""
        self._thread.run(self._conversation.multicast(payload, to, lifetime))

    def topic(
        self, name: str, order: TopicOrder = "causal", lifetime: str | timedelta | None = None
    ) -> BlockingTopic:
        """Open a topic, as `Group.topic` does."""
        topic = self._thread.call(lambda: self._conversation.topic(name, order, lifetime))
        return BlockingTopic(self._thread, topic)

    def events(self, timeout: float | None = None) -> Iterator[GroupEvent]:
        """Yield who is heard, lost or gone, as `Group.events` does, until nothing happened for `timeout` s."""
        return self._listen(self._conversation.events, timeout)

    def neighbours(self) -> list[str]:
        """Return the names of the members that are heard now."""
        return self._thread.call(self._conversation.neighbours)

    def status(self) -> dict[str, Any]:
        """Return what `Group.status` returns."""
        return self._thread.call(self._conversation.status)

    def leave(self) -> None:
        """Leave the group for good, as `Group.leave` does. Then close it."""
        self._thread.call(self._conversation.leave)

    @property
    def address(self) -> tuple[str, int]:
        """The host and port this member listens on, over UDP or TCP."""
        return self._conversation.address
