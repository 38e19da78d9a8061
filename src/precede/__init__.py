"""Precede: ordered broadcast for networks that move.

Five functions are the public interface: `join` makes this program a member of a group over real sockets,
`open_group` does so for scripts and notebooks without `await`,
`simulate` runs a protocol in a simulated network, `verify` checks whether an event log keeps its order, and
`read_sweep` gives the results of a sweep as data frames. The
names in `__all__` are public and described in docs/reference/api.md; every other module is internal and may
change in any release. A name is imported on first use, so `import precede` itself loads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.2.0"

__all__ = [
    "Arrival",
    "BadInput",
    "BlockingGroup",
    "BlockingTopic",
    "CombinedTransport",
    "Delivered",
    "Equivocation",
    "Group",
    "GroupEvent",
    "GroupWarning",
    "GuestGateway",
    "History",
    "MessageId",
    "Missed",
    "NotYet",
    "Order",
    "Refused",
    "Retention",
    "SignedPayloads",
    "SignedRoster",
    "Simulation",
    "Snapshot",
    "StoreFailed",
    "Sweep",
    "TcpTransport",
    "Topic",
    "Transport",
    "UdpTransport",
    "Unavailable",
    "Verdict",
    "Violation",
    "Waiting",
    "WebSocketTransport",
    "__version__",
    "join",
    "open_group",
    "read_sweep",
    "simulate",
    "verify",
]

if TYPE_CHECKING:
    from precede.api import Order, join, open_group
    from precede.core.context import Waiting
    from precede.core.errors import BadInput, Missed, NotYet, Refused, StoreFailed, Unavailable
    from precede.core.identity import MessageId
    from precede.experiments.simulation import Simulation, simulate
    from precede.experiments.stored_sweep import Sweep, read_sweep
    from precede.runtime.blocking.blocking_group import BlockingGroup
    from precede.runtime.blocking.blocking_topic import BlockingTopic
    from precede.runtime.deliveries import Arrival, Delivered
    from precede.runtime.evidence.proofs import Equivocation
    from precede.runtime.group import Group
    from precede.runtime.guests.guest_gateway import GuestGateway
    from precede.runtime.guests.signed_payloads import SignedPayloads
    from precede.runtime.history.reading import History
    from precede.runtime.history.retention import Retention
    from precede.runtime.notices import GroupWarning
    from precede.runtime.presence.group_event import GroupEvent
    from precede.runtime.rosters import SignedRoster
    from precede.runtime.topics.topic import Topic
    from precede.runtime.transfer.snapshot import Snapshot
    from precede.runtime.transports.combined import CombinedTransport
    from precede.runtime.transports.tcp import TcpTransport
    from precede.runtime.transports.transport import Transport
    from precede.runtime.transports.udp import UdpTransport
    from precede.runtime.transports.websocket import WebSocketTransport
    from precede.witness.verdict import Verdict, Violation
    from precede.witness.verify import verify
else:
    _MODULES = {
        "precede.api": ("Order", "join", "open_group"),
        "precede.core.context": ("Waiting",),
        "precede.core.errors": ("BadInput", "Missed", "NotYet", "Refused", "StoreFailed", "Unavailable"),
        "precede.core.identity": ("MessageId",),
        "precede.experiments.simulation": ("Simulation", "simulate"),
        "precede.experiments.stored_sweep": ("Sweep", "read_sweep"),
        "precede.runtime.blocking.blocking_group": ("BlockingGroup",),
        "precede.runtime.blocking.blocking_topic": ("BlockingTopic",),
        "precede.runtime.deliveries": ("Arrival", "Delivered"),
        "precede.runtime.evidence.proofs": ("Equivocation",),
        "precede.runtime.group": ("Group",),
        "precede.runtime.history.reading": ("History",),
        "precede.runtime.history.retention": ("Retention",),
        "precede.runtime.presence.group_event": ("GroupEvent",),
        "precede.runtime.rosters": ("SignedRoster",),
        "precede.runtime.transfer.snapshot": ("Snapshot",),
        "precede.runtime.guests.guest_gateway": ("GuestGateway",),
        "precede.runtime.guests.signed_payloads": ("SignedPayloads",),
        "precede.runtime.notices": ("GroupWarning",),
        "precede.runtime.transports.combined": ("CombinedTransport",),
        "precede.runtime.topics.topic": ("Topic",),
        "precede.runtime.transports.tcp": ("TcpTransport",),
        "precede.runtime.transports.transport": ("Transport",),
        "precede.runtime.transports.udp": ("UdpTransport",),
        "precede.runtime.transports.websocket": ("WebSocketTransport",),
        "precede.witness.verdict": ("Verdict", "Violation"),
        "precede.witness.verify": ("verify",),
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name):
        """Import a public name on first use and return it.

        Raise Unavailable if a library that it needs is missing.
        """
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'precede' has no attribute {name!r}")
        from importlib import import_module

        from precede.core.errors import Unavailable, missing_library

        try:
            value = getattr(import_module(_MODULE_OF[name]), name)
        except ModuleNotFoundError as error:
            line = missing_library(error)
            if line is None:
                raise
            raise Unavailable(f"precede.{name} {line}") from error
        globals()[name] = value
        return value

    def __dir__():
        """Return the names of this module, with the public names that are not imported yet."""
        return sorted({*globals(), *_MODULE_OF})
