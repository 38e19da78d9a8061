"""How much of what a member has delivered and logged stays on its disk."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration, parse_duration


class Retention(Struct, frozen=True, kw_only=True):
    """How long delivered messages, and files of the event log, are kept. None is no bound of this kind.

    The oldest messages are evicted first, as soon as one bound is exceeded. A message that the application has
    not taken yet is never evicted. Without a store, at most 1,000 messages with 16 MiB are kept, in memory.

    * `messages`: how many delivered messages are kept; 0 keeps none.
    * `bytes`: how many bytes of messages, with the data that order them.
    * `age`: how long after its delivery a message is kept, such as "30d" or a timedelta.
    * `disk`: how many bytes the files of the store may take. Messages are evicted to get below it, and the file
      shrinks. What the protocol itself needs is not evicted: if that alone takes more, the member says so
      in `status()["warnings"]` (code `store_over_quota`).
    * `log_bytes`, `log_age`: how many bytes of files the folder `log` of `join` may hold, and how old a file
      may be. The oldest files are deleted, the newest never.

    >>> import precede
    >>> precede.Retention(messages=10_000, age="30d").age
    '30d'
    >>> precede.Retention(messages=-1)
    Traceback (most recent call last):
    ...
    precede.core.errors.BadInput: retention: messages: expected 0 or more, or None, got -1
    """

    messages: int | None = 100_000
    bytes: int | None = 1 << 28
    age: str | timedelta | None = None
    disk: int | None = None
    log_bytes: int | None = None
    log_age: str | timedelta | None = None

    def __post_init__(self) -> None:
        for name in ("messages", "bytes", "disk", "log_bytes"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise BadInput(f"retention: {name}: expected 0 or more, or None, got {value!r}")
        for name in ("age", "log_age"):
            _duration(name, getattr(self, name))

    @property
    def age_us(self) -> Duration | None:
        return _duration("age", self.age)

    @property
    def log_age_us(self) -> Duration | None:
        return _duration("log_age", self.log_age)


def _duration(name: str, written: object) -> Duration | None:
    if written is None:
        return None
    if isinstance(written, timedelta):
        duration = written // timedelta(microseconds=1)
    elif isinstance(written, str):
        try:
            duration = parse_duration(written)
        except BadInput as error:
            raise BadInput(f"retention: {name}: {error}") from None
    else:
        raise BadInput(f"retention: {name}: expected a duration such as '30d' or a timedelta, got {written!r}")
    if duration < SECOND:
        raise BadInput(f"retention: {name}: expected at least one second, got {written!r}")
    return duration


NO_HISTORY: Final = Retention(messages=0)
