"""The audit of a deployment: verdicts by group, order and margin, the clocks, and every assumption."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from precede.audit.assumptions import Assumption, list_assumptions
from precede.audit.bounds import ORDERS, Answer, Bounds, Order, bound
from precede.audit.clocks import Clocks, compare_clocks
from precede.audit.deployment import VIEWS, Deployment, View
from precede.audit.story import Story, tell_story
from precede.audit.witness_orders import judge
from precede.core.errors import BadInput
from precede.witness.verdict import Violation

MARGINS_US: Final = (0, 1_000_000, 60_000_000, 600_000_000)
ALL_GROUPS: Final = "all"


class Count(Struct, frozen=True):
    """The late copies of a group of receivers in one order, with one margin.

    `rows` counts only copies with a row; `traces` also those whose row is missing, each at any instant that the
    log allows. The verdict uses all of them.
    """

    group: str
    view: View
    rows: Bounds
    traces: Bounds

    @property
    def verdict(self) -> Answer:
        """The verdict over all orders that the log allows."""
        return self.traces.verdict

    def plain(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "view": self.view,
            "order": self.rows.order,
            "margin_s": self.rows.margin_us / 1e6,
            "verdict": self.verdict,
            "copies": self.rows.copies,
            "at_least": self.rows.at_least,
            "at_most": self.rows.at_most,
            "copies_with_missing": self.traces.copies,
            "at_least_with_missing": self.traces.at_least,
            "at_most_with_missing": self.traces.at_most,
        }


class Study(Struct, frozen=True):
    """An audited deployment.

    `by_group` has every group with margin 0, `by_margin` all messages with every margin and view. `witnessed`
    has, by order, what the witness counted in the kindest and the harshest order. `first` is its first causal
    violation.
    """

    deployment: Deployment
    clocks: Clocks
    by_group: tuple[Count, ...]
    by_margin: tuple[Count, ...]
    witnessed: Mapping[Order, tuple[int, int]]
    assumptions: tuple[Assumption, ...]
    first: Violation | None
    story: Story | None

    def count(self, group: str, order: Order) -> Count:
        """Return the count of a group with margin 0."""
        return next(c for c in self.by_group if c.group == group and c.rows.order == order)

    @property
    def holds(self) -> bool:
        """Whether every order holds for all messages."""
        return all(self.count(ALL_GROUPS, order).verdict == "holds" for order in ORDERS)

    def plain(self) -> dict[str, Any]:
        log = self.deployment
        return {
            "log": log.name,
            "messages": len(log.created),
            "messages_unfollowed": log.unfollowed,
            "first_copies": len(log.first_copies),
            "first_copies_without_row": sum(not copy.is_row for copy in log.first_copies),
            "ghosts": log.ghosts,
            "groups": [count.plain() for count in self.by_group],
            "margins": [count.plain() for count in self.by_margin],
            "witness": {
                order: {"kindest": least, "harshest": most} for order, (least, most) in self.witnessed.items()
            },
            "clocks": {
                "nodes": len(self.clocks.offset_us),
                "differences": len(self.clocks.differences),
                "unexplained": self.clocks.unexplained,
                "suspects": list(self.clocks.suspects),
                "offset_s": {node: offset / 1e6 for node, offset in self.clocks.offset_us.items()},
            },
            "assumptions": [assumption.plain() for assumption in self.assumptions],
            "first": None if self.first is None else self.first.plain(),
            "story": None if self.story is None else self.story.plain(),
        }


def audit(
    log: Deployment,
    margins_us: Sequence[int] = MARGINS_US,
    alternatives: Mapping[str, tuple[str, Deployment]] | None = None,
) -> Study:
    """Audit a deployment.

    `alternatives` are other readings of the same files: an assumption of the reader, what is read without it,
    and the deployment that follows.
    """
    if not log.first_copies:
        raise BadInput(f"{log.name}: no message is at a node that did not write it: there is nothing to audit")
    clocks = compare_clocks(log.hops)
    groups = [ALL_GROUPS, *log.groups]
    by_group = tuple(_count(log, group, "received", order, 0) for group in groups for order in ORDERS)
    by_margin = tuple(
        _count(log, ALL_GROUPS, view, order, margin)
        for view in VIEWS
        for order in ORDERS
        for margin in margins_us
    )
    copies = log.copies()
    kindest = {order: judge(copies, order, kindest=True) for order in ORDERS}
    harshest = {order: judge(copies, order, kindest=False) for order in ORDERS}
    for order in ORDERS:
        _compare(order, bound(copies, order, 0), kindest[order].violations)
    return Study(
        deployment=log,
        clocks=clocks,
        by_group=by_group,
        by_margin=by_margin,
        witnessed={order: (kindest[order].violations, harshest[order].violations) for order in ORDERS},
        assumptions=tuple(list_assumptions(log, clocks, max(margins_us), alternatives or {})),
        first=kindest["causal"].first,
        story=tell_story(log, clocks),
    )


def _count(log: Deployment, group: str, view: View, order: Order, margin_us: int) -> Count:
    only = None if group == ALL_GROUPS else group
    rows, traces = (
        bound(log.copies(group=only, view=view, missing=missing), order, margin_us) for missing in (False, True)
    )
    return Count(group, view, rows, traces)


def _compare(order: Order, bounds: Bounds, witnessed: int) -> None:
    """Fail if the two programs disagree: then one of them is wrong, and no number may be shown."""
    if bounds.at_least != witnessed:
        raise RuntimeError(f"{order}: the sweep counts {bounds.at_least} late copies, the witness {witnessed}")
