"""An emulation from beginning to end: processes started, killed and begun again as a plan says, and watched.

Nodes that crash have a process of their own, which is killed; the others share processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import SECOND, Instant
from precede.core.plan import Plan, Stay
from precede.runtime.emulation.members import Tally
from precede.runtime.emulation.processes import Processes
from precede.runtime.emulation.stage import Stage

Doing = tuple[Instant, int, str]
"""When, which process, and whether it is killed or begun again."""


def until_killed(plan: Plan) -> Plan:
    """The plan as processes live it that do not know when they will be killed."""
    stays = tuple(_open_ended(stay) if stay.ends == "crashed" else stay for stay in plan.stays)
    return msgspec.structs.replace(plan, stays=stays)


def deal(plan: Plan, processes: int) -> tuple[list[list[NodeId]], list[Doing]]:
    """Who lives in which process, and what is done to processes when."""
    crashing = sorted({stay.node for stay in plan.stays if stay.ends == "crashed"})
    others = [node for node in range(len(plan.names)) if node not in crashing]
    count = max(1, min(processes, len(others)))
    shares = [others[place::count] for place in range(count)] if others else []
    doings: list[Doing] = []
    for node in crashing:
        place = len(shares)
        shares.append([node])
        lives = [stay for stay in plan.stays if stay.node == node]
        for stay, after in zip(lives, [*lives[1:], None], strict=True):
            if stay.ends == "crashed" and stay.end is not None:
                doings.append((stay.end, place, "kill"))
                if after is not None:
                    doings.append((after.start, place, "begin"))
    return shares, sorted(doings)


def play(
    stage: Stage,
    shares: list[list[NodeId]],
    doings: list[Doing],
    tell: Callable[[Instant, Tally], None],
    every: float = 1.0,
) -> Tally:
    """Everything the plan says; `tell` is called now and then. Nothing is left behind, whatever happens."""
    clock, end = stage.clock, stage.plan.end
    processes = Processes(stage, shares, end)
    try:
        for number in range(len(shares)):
            processes.start(number)
        todo, told = list(doings), time.monotonic()
        while processes.running():
            while todo and todo[0][0] <= clock.now():
                _, number, what = todo.pop(0)
                processes.kill(number) if what == "kill" else processes.start(number, again=True)
            if time.monotonic() - told >= every:
                told = time.monotonic()
                tell(clock.now(), processes.tally())
            pause = every / 5 if not todo else (todo[0][0] - clock.now()) / SECOND / clock.speed
            time.sleep(min(every / 5, max(0.0, pause)))
    finally:
        processes.stop()
    if processes.failed:
        raise RuntimeError(f"{len(processes.failed)} of {len(shares)} processes ended with an error")
    return processes.tally()


def _open_ended(stay: Stay) -> Stay:
    return Stay(stay.node, stay.start, None)
