"""What `Group.events()` yields."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

EventKind: TypeAlias = Literal["joined", "left", "heard_again", "lost", "mismatch", "warning"]


class GroupEvent(Struct, frozen=True):
    """Something happened in the group, as this member sees it. `member` is a name, or "" if none is meant.

    `kind` is one of:

    * "joined": a member is heard for the first time since this member started, or since it left.
    * "lost": a member is not heard any more: it is out of range, stopped, or asleep.
    * "heard_again": a member that was lost is heard again.
    * "left": a member left the group for good (`Group.leave`), or a new roster lacks it.
    * "mismatch": a member is set up differently: `code` says what differs, `text` says it as a sentence.
    * "warning": something else is wrong with the set-up. `code` and `text` are those of the `GroupWarning`.

    `replayed` is True if the event tells the state at the time of the subscription: the latest event of each
    member, and each warning. `topic` is set if a mismatch concerns one topic only. `at_us` is the time of the
    event in microseconds, by this member's clock.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     ana = precede.join("picnic", "ana", key=None, beacon=0.05)
    ...     async with ana:
    ...         ben = precede.join("picnic", "ben", key=None, beacon=0.05, peers=[ana.address])
    ...         async with ben:
    ...             async for event in ana.events():
    ...                 print(event.kind, event.member)
    ...                 break
    >>> asyncio.run(main())
    joined ben
    """

    kind: EventKind
    member: str = ""
    code: str = ""
    text: str = ""
    topic: str = ""
    at_us: int = 0
    replayed: bool = False
