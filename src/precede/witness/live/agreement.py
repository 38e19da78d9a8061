"""Agreement of a known membership, judged by the rows that a live verifier has counted so far.

The rules are those of `witness/checks/agreement.py`. A member whose rows wait for others lacks nothing: rows
that have not arrived prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from precede.witness.live.state import LiveState
from precede.witness.live.stories import Stories
from precede.witness.verdict import Violation


class LiveAgreement:
    """What the members of a total order lack at this moment.

    `absent` has a reason for each member without rows. `lacks` counts the pairs of a member and a message that
    it did not deliver although another member did; a forgotten message was delivered by all. Other orders have
    reasons only.
    """

    def __init__(self, state: LiveState, members: Sequence[str]) -> None:
        self._state = state
        active: dict[str, list[int]] = {}
        for p, process in enumerate(state.processes):
            if process.sent or process.taken:
                active.setdefault(process.node, []).append(p)
        self.absent = [
            f"member {name} neither broadcast nor delivered: was its log gathered?"
            for name in members
            if name not in active
        ]
        correct = [active[name][0] for name in members if len(active.get(name, ())) == 1]
        self._correct = correct if state.order == "total" else []
        first = self._first = state.facts.forgotten
        self._delivered = np.zeros((len(self._correct), state.facts.messages - first), np.bool_)
        for place, p in enumerate(self._correct):
            for _, message in state.deliveries_of(p):
                if message >= first:
                    self._delivered[place, message - first] = True
        by_anybody = self._delivered.any(axis=0)
        self._missing = by_anybody & ~self._delivered
        for place, p in enumerate(self._correct):
            if state.processes[p].held or state.processes[p].queue:
                self._missing[place] = False
        self.lacks = int(self._missing.sum())

    def first(self) -> Violation | None:
        """Explain the first lack; None if there is none."""
        if not self.lacks:
            return None
        place, message = (int(index) for index in np.argwhere(self._missing)[0])
        other = int(np.argmax(self._delivered[:, message]))
        lack = (self._correct[place], self._correct[other], self._first + message)
        return Stories(self._state).lack(*lack)
