"""The view of VCube's diagnosis: who works, who is gone, how many positions the hypercube has."""

from __future__ import annotations

from precede.protocols.vcube2018.packets import Report
from precede.protocols.vcube2018.view import View, combine


def test_a_view_counts_positions_up_to_the_highest_node_that_was_ever_known() -> None:
    view = View([0, 2])
    assert view.positions == 3
    assert view.merge([(5, 0)])
    assert view.positions == 6
    assert view.live == 0b100101
    assert view.mark_gone(5)
    assert (view.positions, view.live, view.is_gone(5)) == (6, 0b101, True)
    assert not view.mark_gone(5), "it is gone already"
    assert not view.merge([(2, 0)]), "no news"


def test_a_report_of_several_nodes_says_what_all_have_and_what_any_has() -> None:
    """A vector that is shorter, as that of a newcomer, has 0 for the other sources."""
    events = ((0, 0), (1, 0))
    both = combine(
        [Report(events, True, (2, 1), (2, 3), (9,)), Report(events, False, (1,), (4,), (7, 9))],
    )
    assert both == Report(events, False, (1, 0), (4, 3), (7, 9))
    assert combine([Report(events, True, (), (), ())] * 2).settled
