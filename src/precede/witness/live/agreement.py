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
    """What members of a total order lack now: the number of `lacks`, and a reason for each `absent` one."""

    def __init__(self, state: LiveState, members: Sequence[str]) -> None:
        self._state = state
        active: dict[str, list[int]] = {}
        for p, process in enumerate(state.processes):
            if process.sent or any(state.delivered[p]):
                active.setdefault(process.node, []).append(p)
        self.absent = [
            f"member {name} neither broadcast nor delivered: was its log gathered?"
            for name in members
            if name not in active
        ]
        correct = [active[name][0] for name in members if len(active.get(name, ())) == 1]
        self._correct = correct if state.order == "total" else []
        self._delivered = np.zeros((len(self._correct), len(state.source)), np.bool_)
        for place, p in enumerate(self._correct):
            steps = np.frombuffer(state.delivered[p], np.uint32)
            self._delivered[place, : len(steps)] = steps > 0
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
        return Stories(self._state).lack(self._correct[place], self._correct[other], message)
