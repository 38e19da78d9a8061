"""The tests that a VCube node has sent and that are not answered yet (vcube2018, section 2)."""

from typing import NamedTuple

from precede.core.effects import CancelTimer, Effect
from precede.core.identity import NodeId
from precede.protocols.vcube2018.view import View


class RunningTest(NamedTuple):
    """A test's number, and whether the tested node takes over from one that crashed."""

    number: int
    takes_over: bool


class RunningTests:
    """Keeps the tests that are under way: at most one for each node."""

    def __init__(self) -> None:
        self.by_node: dict[NodeId, RunningTest] = {}
        self._last = 0

    def begin(self, node: NodeId, takes_over: bool) -> int | None:
        """Begin a test and return its number; None if one is under way, which then notes `takes_over`."""
        running = self.by_node.get(node)
        if running is not None:
            if takes_over:
                self.by_node[node] = RunningTest(running.number, True)
            return None
        self._last += 1
        self.by_node[node] = RunningTest(self._last, takes_over)
        return self._last

    def end(self, node: NodeId, number: int) -> RunningTest | None:
        """End the test that a node answered, and return it; None if no test of this number is under way."""
        running = self.by_node.get(node)
        if running is None or running.number != number:
            return None
        return self.by_node.pop(node)

    def cancel_gone(self, view: View, effects: list[Effect]) -> None:
        for node in [node for node in self.by_node if not view.is_working(node)]:
            del self.by_node[node]
            effects.append(CancelTimer(("silent", node)))
