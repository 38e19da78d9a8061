"""Swarm worlds for causal multicast: point-to-point worlds, and for PRS each form of its algorithm."""

from random import Random
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from precede.experiments.run import Prepared
from precede.experiments.swarm.draw import point_to_point as draw_point_to_point
from precede.experiments.swarm.due import offered_missing
from precede.experiments.swarm.plan import Drawer, Plan
from precede.experiments.swarm.promises import loses_messages
from precede.experiments.swarm.swarm import everything_missing

_FORMS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"pruning": "optimal"},
    {"pruning": "fat"},
    {"encoding": "bitmap"},
    {"case": "broadcast"},
)


def draw(protocol: str, seed: int, random: Random) -> Plan:
    """Draw a point-to-point world, the same for all forms of the protocol, and then the form."""
    plan = draw_point_to_point.draw(protocol, seed, random)
    form: dict[str, Any] = {"checkpoint": random.choice((1, 3, 10, 64))}
    if protocol == "prs":
        form |= random.choice(_FORMS)
    workload = dict(plan.run.workload)
    if form.get("case") == "broadcast":
        workload["script"] = [
            {key: value for key, value in birth.items() if key != "to"} for birth in workload["script"]
        ]
    run = replace(plan.run, options={**plan.run.options, **form}, workload=workload)
    return replace(plan, run=run)


def missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """List messages that are due and not delivered. Others may depend on what a source took with it."""
    if loses_messages(plan):
        return offered_missing(plan, prepared, log, plan.settle)
    return everything_missing(plan, prepared, log)


DRAWER: Final = Drawer(draw, missing)
