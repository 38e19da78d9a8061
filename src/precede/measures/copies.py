"""Measures of copies: transfers that were started, relayed and aborted, and what became of carried copies.

A *transfer* is one message in one packet to one node. It is *relayed* when the packet is received, and
*aborted* if it is not. Copies that a node carried are *dropped* because of a full buffer or their deadline, or
*removed* because they were handed over or acknowledged. The *buffer time* of such a copy is the time that it
was carried. The *overhead ratio* is relayed copies that were no delivery, per delivery.

With a window, transfers are counted if they happen in it, and relayed copies are the first copies of measured
messages and the other copies that were received in it: a row of a packet does not name its messages.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from precede.measures.columns import Integers
from precede.measures.messages import Broadcasts, FirstCopies, MessageRows, Window
from precede.measures.statistics import Measures, ratio, summarise

DROPPED: Final = ("evicted", "expired_cached")
REMOVED: Final = ("acknowledged", "handed_over")


class Transfers:
    """Counts the transfers of one run."""

    def __init__(self, window: Window | None) -> None:
        self.window = window or Window()
        self.to_one = self.to_all = self.received = self.first_copies = 0
        self.receptions_logged = False

    def add_receptions(self, at: Integers) -> None:
        """Count first copies, received at these instants."""
        self.first_copies += int(np.count_nonzero(self.window.has(at)))

    def add_received(self, at: Integers, messages: Integers) -> None:
        """Count the messages of received packets."""
        self.receptions_logged |= bool(at.size)
        self.received += int(messages[self.window.has(at)].sum())

    def add_sent(self, at: Integers, peer: Integers, messages: Integers) -> None:
        """Count the messages of sent packets; a packet to all neighbours has no peer."""
        inside = self.window.has(at)
        self.to_one += int(messages[inside & (peer >= 0)].sum())
        self.to_all += int(messages[inside & (peer < 0)].sum())

    def measures(self, receptions: int, deliveries: int) -> Measures:
        """The measures of transfers; none if the log has no received packets.

        Where messages are sent to all neighbours, or packets are duplicated, no transfer is called aborted.
        """
        if not self.receptions_logged:
            return {}
        relayed = receptions + self.received - self.first_copies
        measures: Measures = {"relayed": relayed, "overhead_ratio": ratio(relayed - deliveries, deliveries)}
        if self.to_one and not self.to_all and self.to_one >= self.received:
            measures["transfers_started"] = self.to_one
            measures["transfers_aborted"] = self.to_one - self.received
        return measures


def measure_discarded(
    discarded: MessageRows,
    reason: Integers,
    codes: Mapping[str, int],
    copies: FirstCopies,
    broadcasts: Broadcasts,
) -> tuple[Measures, Integers]:
    """Count discards, in all and by reason, and return the buffer times of carried copies.

    `expired` counts messages that expired while they waited for their order.
    """
    per_reason = np.bincount(reason[reason >= 0], minlength=len(codes))
    by_name = {name: int(per_reason[code]) for name, code in codes.items()}
    carried = np.isin(reason, [codes[name] for name in (*DROPPED, *REMOVED) if name in codes])
    dropped = discarded.chosen(carried)
    since = (copies.waits(dropped), broadcasts.since_own(dropped))
    times: Integers = np.concatenate(since)
    measures: Measures = {
        "expired": by_name.get("expired_pending", 0),
        "discarded": reason.size,
        **{f"discarded_{name}": count for name, count in sorted(by_name.items()) if count},
        "copies_dropped": sum(by_name.get(name, 0) for name in DROPPED),
        "copies_removed": sum(by_name.get(name, 0) for name in REMOVED),
        **summarise("buffer_time_us", times),
    }
    return measures, times
