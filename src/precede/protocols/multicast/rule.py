"""The interface of a multicast rule (prs1997).

A message goes to a set of destinations chosen for it. PRS, RST and SES differ in what a message carries and in
when it may be delivered: that is a `Rule`. `MulticastNode` (`node.py`) does the rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from precede.core.identity import NodeId
from precede.protocols.multicast.address_book import AddressBook
from precede.protocols.multicast.packets import MulticastPacket, Stamp
from precede.protocols.multicast.process import Process


@mypyc_attr(allow_interpreted_subclasses=True)
class Rule(ABC):
    """An algorithm of causal multicast: its state, what a message carries, when it may be delivered.

    `me` is this process. `reached` maps a process to a number that only grows; a stamp is deliverable when
    `reached` has passed the thresholds in `needs`.
    """

    me: Process
    reached: dict[Process, int]
    packet: ClassVar[type[MulticastPacket]]
    names_messages: ClassVar[bool] = False
    """Are the thresholds in `needs` message numbers?"""

    def check(self, to: Sequence[NodeId], book: AddressBook) -> None:
        """Raise Refused if this rule cannot send to these nodes."""

    @abstractmethod
    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        """Return one stamp for each destination, or one for all, and record that the message is sent."""

    @abstractmethod
    def needs(self, stamp: Any) -> Mapping[Process, int]:
        """Return thresholds: the message is deliverable when `reached` is at least this for each process."""

    @abstractmethod
    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: Any
    ) -> Iterable[Process]:
        """Update the state after a message was delivered. Returns the processes whose `reached` grew."""

    @abstractmethod
    def forget(self, node: NodeId, incarnation: int) -> None:
        """Remove the data about messages to this node's incarnations before `incarnation`; none are sent."""

    @abstractmethod
    def save(self) -> Any:
        """Return the state as plain data that later inputs do not change."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Replace the state by one that `save` returned."""

    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Return the number of entries of the rule's registries, by name."""
