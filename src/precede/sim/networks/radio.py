"""The interface of a cell's radio, and the frame queue of a node."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Protocol, final

from mypy_extensions import mypyc_attr

from precede.core.effects import Key, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import Instant
from precede.sim.networks.network import Simulator


class Cells(Protocol):
    """The cellular network as its radio sees it."""

    world: Simulator
    stations: int
    cell: list[NodeId]
    """The station of each node: itself for a station, -1 for a host out of coverage."""
    hosts_in: list[dict[NodeId, None]]
    """The hosts in each station's cell, in the order in which they entered it."""
    place: list[tuple[float, float]]
    """The position of each node, in metres."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Radio(ABC):
    """Carries frames between a station and the hosts of its cell."""

    def attach(self, cells: Cells, nodes: int) -> None:
        self.cells = cells
        self.world = cells.world
        self.nodes = nodes

    @abstractmethod
    def send(self, sender: NodeId, send: Send) -> None:
        """Sends one frame to the station of the cell, to one of its hosts, or to all of them."""

    @abstractmethod
    def cancel(self, sender: NodeId, key: Key) -> None:
        """Takes back a keyed frame that is still queued."""

    def drop(self, node: NodeId) -> None:
        """Drops the queue of a node that has left its cell or is down."""

    def heal(self) -> None:
        """End all faults: from now on nothing is lost and nothing collides."""

    def counters(self) -> Mapping[str, int]:
        return {}

    def receivers(self, sender: NodeId, to: NodeId) -> list[NodeId]:
        """Returns who can receive a frame now: of a station its hosts, or the one host `to`; of a host `to`."""
        if sender >= self.cells.stations:
            return [to]
        if to == NEIGHBOURS:
            return list(self.cells.hosts_in[sender])
        return [to] if 0 <= to < self.nodes and self.cells.cell[to] == sender else []


class FrameQueue:
    """Frames in order; a frame with the key of a queued one replaces it."""

    def __init__(self) -> None:
        self._frames: dict[int, Send] = {}
        self._by_key: dict[Key, int] = {}
        self._token = 0

    def put(self, send: Send) -> None:
        if send.key is not None and send.key in self._by_key:
            self._frames[self._by_key[send.key]] = send
            return
        self._token += 1
        self._frames[self._token] = send
        if send.key is not None:
            self._by_key[send.key] = self._token

    def put_back(self, send: Send) -> None:
        """Puts a frame back at the front, unless a newer frame with its key is queued."""
        if send.key is not None and send.key in self._by_key:
            return
        self._token += 1
        self._frames = {self._token: send, **self._frames}
        if send.key is not None:
            self._by_key[send.key] = self._token

    def take(self) -> Send:
        token = next(iter(self._frames))
        send = self._frames.pop(token)
        if send.key is not None:
            del self._by_key[send.key]
        return send

    def remove(self, key: Key) -> None:
        token = self._by_key.pop(key, None)
        if token is not None:
            del self._frames[token]

    def clear(self) -> list[Send]:
        dropped = list(self._frames.values())
        self._frames.clear()
        self._by_key.clear()
        return dropped

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Send]:
        return iter(self._frames.values())


@final
class Airing:
    """One frame on the air."""

    def __init__(
        self, sender: NodeId, send: Send, start: Instant, end: Instant, place: tuple[float, float], tries: int
    ) -> None:
        self.sender = sender
        self.send = send
        self.start = start
        self.end = end
        self.place = place
        self.tries = tries
