"""The assumptions under which late copies were counted, each with the counts that change if it is dropped."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from precede.audit.bounds import ORDERS, Bounds, Order, bound
from precede.audit.clocks import Clocks
from precede.audit.copies import Copies, rank_messages
from precede.audit.deployment import Deployment
from precede.core.instants import format_duration


class Assumption(Struct, frozen=True):
    """An assumption, what is counted without it, and the counts with and without it, by order."""

    text: str
    without: str
    counts: Mapping[Order, tuple[Bounds, Bounds]]

    def plain(self) -> dict[str, Any]:
        return {
            "assumption": self.text,
            "without": self.without,
            **{
                order: {
                    "with": [before.at_least, before.at_most, before.copies],
                    "without": [after.at_least, after.at_most, after.copies],
                }
                for order, (before, after) in self.counts.items()
            },
        }


def list_assumptions(
    log: Deployment, clocks: Clocks, margin_us: int, alternatives: Mapping[str, tuple[str, Deployment]]
) -> Iterator[Assumption]:
    """Yield every assumption of an audit. `alternatives` are those of the reader of the log."""
    base = {order: bound(log.copies(), order, 0) for order in ORDERS}

    def assumption(text: str, without: str, copies: Copies, margin: int = 0) -> Assumption:
        return Assumption(
            text, without, {order: (base[order], bound(copies, order, margin)) for order in ORDERS}
        )

    for text, (without, other) in alternatives.items():
        yield assumption(text, without, other.copies())
    yield assumption(
        "a node's own clock orders its events, to the resolution of the log",
        f"only instants more than {format_duration(margin_us)} apart are ordered",
        log.copies(),
        margin_us,
    )
    yield assumption(
        "no clock was set back or forward while the log was written",
        f"without the nodes whose clocks jumped ({', '.join(clocks.suspects) or 'none'}) and their messages",
        log.copies(without=clocks.suspects),
    )
    yield assumption(
        "the first row of a message at a node is its first copy, and a copy without a row never came",
        "copies that only other rows show are counted, at any instant that the log allows",
        log.copies(missing=True),
    )
    yield assumption(
        "a copy that a node received counts, also if the node only relays it",
        "only copies at nodes to which the message is addressed count, as late copies and as causes",
        log.copies(view="addressed"),
    )
    yield Assumption(
        "a message may depend on messages of other groups",
        "each group is counted by itself",
        {order: (base[order], _sum(log, order)) for order in ORDERS},
    )
    yield assumption(
        "two messages that one node created at the same instant are in the order of their ids",
        "they are in the opposite order",
        _reverse_ties(log.copies()),
    )


def _sum(log: Deployment, order: Order) -> Bounds:
    """Return the sum of the counts of all groups."""
    parts = [bound(log.copies(group=group), order, 0) for group in log.groups]
    totals = (sum(getattr(part, name) for part in parts) for name in ("copies", "at_least", "at_most"))
    return Bounds(order, 0, *totals)


def _reverse_ties(copies: Copies) -> Copies:
    order = sorted(range(len(copies.labels)), key=lambda m: copies.rank[m])
    names = [""] * len(copies.labels)
    for place, message in enumerate(order):
        names[message] = str(len(order) - place)
    return replace(copies, rank=rank_messages(copies.source, copies.created, names))
