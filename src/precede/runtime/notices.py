"""Warns the application about the set-up of its group: each warning once, as a sentence.

A notice is logged as a warning to the logger `precede` and listed in `Group.status()["warnings"]`. Notices are
for mistakes of a set-up that frames alone would leave unseen: nobody is heard, another key, other settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from precede.runtime.observe.json_lines import MemberLog

MOST_NOTICES: Final = 64


class GroupWarning(Struct, frozen=True):
    """Something is wrong with the set-up of a group. `peer` is the other member's name, or "" if none is meant.

    `topic` is the topic that is concerned, or "" if it is the whole group. `code` is for
    programs: it stays the same while the words of `text` may change.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None, beacon=0.01) as group:
    ...         await asyncio.sleep(0.5)
    ...         for warning in group.status()["warnings"]:
    ...             print(warning.code)
    >>> asyncio.run(main())
    nobody_heard
    """

    code: str
    text: str
    peer: str = ""
    topic: str = ""


class Notices:
    """Keeps the warnings of one member: one for each code, peer and topic, at most `MOST_NOTICES` (64)."""

    def __init__(self, group: str, name: str) -> None:
        self._log = MemberLog(group, name)
        self._given: dict[tuple[str, str, str], GroupWarning] = {}
        self.on_given: Callable[[GroupWarning], None] = lambda warning: None

    def give(self, code: str, text: str, peer: str = "", topic: str = "") -> None:
        """Log a warning and keep it for `status`, unless 64 are kept or it was given for this peer."""
        if (code, peer, topic) not in self._given and len(self._given) < MOST_NOTICES:
            warning = self._given[code, peer, topic] = GroupWarning(code, text, peer, topic)
            self._log.line(logging.WARNING, "warning", text, code=code, peer=peer)
            self.on_given(warning)

    def __len__(self) -> int:
        return len(self._given)

    def listed(self) -> list[GroupWarning]:
        """Return the warnings that were given, oldest first: at most 64, since later ones are not kept."""
        return list(self._given.values())
