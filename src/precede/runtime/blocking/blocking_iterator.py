"""Takes the items of an asynchronous iterator one by one, from a thread without an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from precede.runtime.blocking.loop_thread import LoopThread

T = TypeVar("T")


class BlockingIterator(Generic[T]):
    """Asks for one item at a time. A request that timed out or was interrupted stays: no item is lost."""

    def __init__(self, thread: LoopThread, items: AsyncIterator[T]) -> None:
        self._thread = thread
        self._items = items
        self._request: Future[T | None] | None = None

    def until_quiet(self, timeout: float | None) -> Iterator[T]:
        """Yield items until none came for `timeout` seconds (None: for ever), or there are no more."""
        while (item := self._next(timeout)) is not None:
            yield item

    def _next(self, timeout: float | None) -> T | None:
        if self._request is None:
            self._request = self._thread.submit(self._take())
        try:
            item = self._request.result(timeout)
        except TimeoutError:
            if not self._request.done():
                return None
            self._request = None
            raise
        except Exception:
            self._request = None
            raise
        self._request = None
        return item

    async def _take(self) -> T | None:
        return await anext(self._items, None)
