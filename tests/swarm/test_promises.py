"""Which worlds are asked for liveness: not those where a DRIFT source leaves unheard, or no majority remains.

Messages with a lifetime are due if they live long enough.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from precede.core.effects import Deliver, Effect
from precede.core.instants import Instant
from precede.eventlog.sinks import NoSink
from precede.experiments.run import prepare
from precede.experiments.swarm.plan import Plan, draw_plan, find_drawer
from precede.experiments.swarm.promises import has_lifetimes, is_live, loses_majority
from precede.experiments.swarm.swarm import run_plan
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.unordered import Unordered

CUT_OFF = 700000001132
"""Source 0 leaves after 4 s and is down after 14 s; node 4, its only way to the others, comes after 15 s."""
STALLED = 700000000897
"""A source stalls from before its leave until it is down."""
NO_MAJORITY = 700000004457
"""Of three founders one is cut off and voted out; then one of the two voters loses its store."""


def changed(plan: Plan, world: dict[str, Any] | None = None, options: dict[str, Any] | None = None) -> Plan:
    run = plan.run
    return replace(
        plan, run=replace(run, world={**run.world, **(world or {})}, options={**run.options, **(options or {})})
    )


@pytest.mark.parametrize("seed", [CUT_OFF, STALLED])
def test_a_source_whose_leave_nobody_can_hear_is_waited_for_unless_views_remove_it(seed: int) -> None:
    plan = draw_plan("drift", seed)
    assert not is_live(plan)
    assert is_live(changed(plan, options={"suspect_after": "1s"}))


def test_a_leave_that_others_can_hear_must_be_heard() -> None:
    plan = draw_plan("drift", CUT_OFF)
    enter, leave, other = plan.run.world["presence"]
    assert (enter["node"], leave["node"]) == ("4", "0")
    for stays in (
        [leave, other],
        [{**enter, "enter": "14079398us"}, leave, other],
        [enter, {**leave, "leave": "5501294us"}, other],
    ):
        assert is_live(changed(plan, {"presence": stays})), stays
    for stays in ([{**enter, "enter": "14079399us"}, leave, other], [enter, {**leave, "leave": "5501293us"}]):
        assert not is_live(changed(plan, {"presence": stays})), stays


def test_a_node_that_is_no_source_may_leave_unheard() -> None:
    assert is_live(changed(draw_plan("drift", CUT_OFF), options={"sources": "1 2"}))


def test_only_worlds_without_movement_and_partitions_are_exempt() -> None:
    plan = draw_plan("drift", CUT_OFF)
    for world in ({"speed": 1}, {"partitions": [{"start": "1s", "end": "2s", "groups": [["1"]]}]}):
        assert is_live(changed(plan, world)), world


@pytest.mark.parametrize(
    ("partitions", "keeps", "lost"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_a_view_cannot_change_if_one_of_its_two_voters_has_lost_its_store(
    partitions: bool, keeps: bool, lost: bool
) -> None:
    plan = draw_plan("drift+founding", NO_MAJORITY)
    run = plan.run
    (crash,) = run.faults["crashes"]
    if not partitions:
        run = replace(run, world={**run.world, "partitions": []})
    run = replace(run, faults={**run.faults, "crashes": [{**crash, "keep": keeps}]})
    run = replace(run, options={**run.options, "durable": keeps})
    prepared = prepare(run, NoSink())
    prepared.world.schedule(plan.heal_at, prepared.world.heal, plan.dead)
    prepared.world.run(plan.end)
    assert loses_majority(prepared) is lost


@pytest.mark.parametrize("kind", ["contacts", "point_to_point", "flood"])
def test_a_message_that_lives_long_enough_is_due_on_every_network(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that deliver nothing with a lifetime are noticed."""
    take = Unordered.take

    def take_unlimited(
        self: Unordered, envelope: Envelope, deliver: Deliver, now: Instant, effects: list[Effect]
    ) -> None:
        if envelope.deadline is None:
            take(self, envelope, deliver, now, effects)

    plans = (draw_plan("unordered", seed) for seed in range(1_000_000, 1_000_400))
    drawn = [plan for plan in plans if plan.run.world["kind"] == kind and has_lifetimes(plan)][:3]
    results = [run_plan(plan, find_drawer("unordered")) for plan in drawn]
    assert not any(result.failed for result in results), results
    monkeypatch.setattr(Unordered, "take", take_unlimited)
    assert any(run_plan(plan, find_drawer("unordered")).undelivered for plan in drawn)
