"""The links of the group as a lane sees them: its packets begin with its number, its keys name it."""

from collections.abc import Sequence
from typing import Final

from precede.core.effects import Key
from precede.core.identity import NodeId
from precede.runtime.departures import Outside
from precede.runtime.topics.lane_plan import FIRST_LANE

_MARK: Final = "topics"


class LaneLinks:
    """Sends the packets of one lane over links that carry other packets too."""

    def __init__(self, links: Outside, number: int) -> None:
        self._links = links
        self._number = number
        self._head = bytes((FIRST_LANE[0] + number,))

    def send(self, data: bytes, to: NodeId, key: Key | None = None) -> int:
        return self._links.send(self._head + data, to, None if key is None else lane_key(self._number, key))

    def send_together(self, packets: Sequence[bytes], to: NodeId) -> int:
        return self._links.send_together([self._head + data for data in packets], to)

    def cancel(self, key: Key) -> None:
        self._links.cancel(lane_key(self._number, key))


def lane_key(number: int, key: Key) -> Key:
    """Return a key that no other lane uses."""
    return (_MARK, number, 1, *key) if isinstance(key, tuple) else (_MARK, number, 0, key)


def split_key(key: Key) -> tuple[int, Key] | None:
    """Return the number of the lane and its own key; None for a key of the group itself."""
    match key:
        case ("topics", int(number), 1, *parts):
            return number, tuple(parts)
        case ("topics", int(number), 0, own):
            return number, own
    return None
