"""Runs an emulation from start to end: starts, kills and restarts processes as a plan says.

A node that crashes has a process of its own, which is killed; the other nodes share processes.
"""

import time
from collections.abc import Callable

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import SECOND, Instant
from precede.core.plan import Plan, Stay
from precede.runtime.emulation.members import Tally
from precede.runtime.emulation.processes import Processes
from precede.runtime.emulation.stage import Stage

Action = tuple[Instant, int, str]
"""When, which process, and whether it is killed ("kill") or started again ("begin")."""


def until_killed(plan: Plan) -> Plan:
    """Return the plan without its crashes, for a process that will be killed and must not know when."""
    stays = tuple(_open_ended(stay) if stay.ends == "crashed" else stay for stay in plan.stays)
    return msgspec.structs.replace(plan, stays=stays)


def deal(plan: Plan, processes: int) -> tuple[list[list[NodeId]], list[Action]]:
    """Divide the nodes among processes, and say when processes are killed and started again."""
    crashing = sorted({stay.node for stay in plan.stays if stay.ends == "crashed"})
    others = [node for node in range(len(plan.names)) if node not in crashing]
    count = max(1, min(processes, len(others)))
    shares = [others[place::count] for place in range(count)] if others else []
    actions: list[Action] = []
    for node in crashing:
        place = len(shares)
        shares.append([node])
        stays = [stay for stay in plan.stays if stay.node == node]
        for stay, after in zip(stays, [*stays[1:], None], strict=True):
            if stay.ends == "crashed" and stay.end is not None:
                actions.append((stay.end, place, "kill"))
                if after is not None:
                    actions.append((after.start, place, "begin"))
    return shares, sorted(actions)


def play(
    stage: Stage,
    shares: list[list[NodeId]],
    actions: list[Action],
    report: Callable[[Instant, Tally], None],
    every: float = 1.0,
) -> Tally:
    """Run the nodes of an emulation, a list of them in each process, and return the sum of their counts.

    `report` gets the counts regularly. No process outlives this call; RuntimeError if one failed.
    """
    clock, end = stage.clock, stage.plan.end
    processes = Processes(stage, shares, end)
    try:
        for number in range(len(shares)):
            processes.start(number)
        todo, reported = list(actions), time.monotonic()
        while processes.running():
            while todo and todo[0][0] <= clock.now():
                _, number, action = todo.pop(0)
                processes.kill(number) if action == "kill" else processes.start(number, restart=True)
            if time.monotonic() - reported >= every:
                reported = time.monotonic()
                report(clock.now(), processes.tally())
            pause = every / 5 if not todo else (todo[0][0] - clock.now()) / SECOND / clock.speed
            time.sleep(min(every / 5, max(0.0, pause)))
    finally:
        processes.stop()
    if processes.failed:
        raise RuntimeError(f"{len(processes.failed)} of {len(shares)} processes ended with an error")
    return processes.tally()


def _open_ended(stay: Stay) -> Stay:
    return Stay(stay.node, stay.start, None)
