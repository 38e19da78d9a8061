"""CPU per delivery of members in processes of their own, beside other ways to reach every member.

Every member broadcasts 200 bytes as fast as all of them deliver, 32 messages outstanding each, over loopback. A
delivery is a message handed to one application, own messages included; CPU time is that of all processes, a
server included. Rounds take turns, and the least figure of each counts, because machines are noisy. The table
says what each system promises: microseconds alone do not compare them.

python -m benchmarks.runtime [--json] [--seconds S] [--rounds N] [--members 5,20] [--outstanding N] [--only …]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import psutil

from benchmarks import rivals
from benchmarks.processes import Cost, run_members
from precede.runtime.links.keyring import new_key

Run: TypeAlias = Callable[[int, float, int], Cost]
"""Measures a number of members for some seconds, with a number of messages outstanding at each."""

PROMISES = ("order", "loss", "sealed", "signed", "stored", "server")


class System(NamedTuple):
    """A way to bring messages to every member: how a run of it is measured, and what it promises."""

    title: str
    run: Run
    promises: Sequence[str]
    needs: str = ""
    """The library that it needs, by the name that Python imports."""


def precede_group(signed: bool, *, lan: bool = True) -> Run:
    """A group with stores on disk and sealed frames; with `lan` over multicast on the loopback interface."""

    def run(members: int, seconds: float, outstanding: int, profile: str | None = None) -> Cost:
        with tempfile.TemporaryDirectory() as folder:
            options = {
                "outstanding": outstanding,
                "folder": folder,
                "key": new_key(),
                "signed": signed,
                "lan": ("239.83.7.9", rivals.free_port()) if lan else None,
                "profile": profile,
            }
            return run_members("benchmarks.precede_member:member", members, options, seconds)

    return run


def rival(name: str) -> Run:
    def run(members: int, seconds: float, outstanding: int) -> Cost:
        return run_members(f"benchmarks.rivals:{name}", members, {"outstanding": outstanding}, seconds)

    return run


def through_nats(members: int, seconds: float, outstanding: int) -> Cost:
    port = rivals.free_port()
    options = {"outstanding": outstanding, "port": port}
    with rivals.nats_server(port) as pid:

        def cpu_s() -> float:
            times = psutil.Process(pid).cpu_times()
            return times.user + times.system

        return run_members("benchmarks.rivals:nats", members, options, seconds, cpu_s)


SYSTEMS = {
    "precede": System("Precede", precede_group(False), ("causal", "repaired", "yes", "no", "yes", "no")),
    "precede_signed": System(
        "Precede, signed", precede_group(True), ("causal", "repaired", "yes", "yes", "yes", "no")
    ),
    "precede_unicast": System(
        "Precede, unicast only",
        precede_group(False, lan=False),
        ("causal", "repaired", "yes", "no", "yes", "no"),
    ),
    "udp": System("asyncio UDP", rival("udp"), ("none", "lost", "no", "no", "no", "no")),
    "zeromq": System(
        "ZeroMQ PUB/SUB", rival("zeromq"), ("per sender", "lost while apart", "no", "no", "no", "no"), "zmq"
    ),
    "nats": System("NATS", through_nats, ("per sender", "lost while apart", "no", "no", "no", "yes"), "nats"),
    "zenoh": System(
        "Zenoh, peers", rival("zenoh"), ("per sender", "lost while apart", "no", "no", "no", "no"), "zenoh"
    ),
}


def measure(
    names: Sequence[str], sizes: Sequence[int], seconds: float, rounds: int, outstanding: int
) -> dict[str, Any]:
    """Measure each system at each number of members, taking turns."""
    best: dict[tuple[str, int], Cost] = {}
    for _ in range(rounds):
        for size in sizes:
            for name in names:
                cost = SYSTEMS[name].run(size, seconds, outstanding)
                if (name, size) not in best or cost.cpu_us < best[name, size].cpu_us:
                    best[name, size] = cost
    result: dict[str, Any] = {"load_average": os.getloadavg()[0], "outstanding": outstanding}
    for (name, size), cost in best.items():
        result[f"{name}_{size}_cpu_us"] = round(cost.cpu_us, 1)
        result[f"{name}_{size}_deliveries_per_second"] = round(cost.per_second)
        if ("udp", size) in best:
            result[f"ratio_{name}_{size}_to_udp"] = round(cost.cpu_us / best["udp", size].cpu_us, 2)
    return result


def table(result: dict[str, Any], names: Sequence[str], sizes: Sequence[int]) -> str:
    """Return the figures and promises as a table in Markdown."""
    heads = ["", *(f"µs at n = {size}" for size in sizes), *PROMISES]
    lines = [heads, ["---", *("---:" for _ in sizes), *("---" for _ in PROMISES)]]
    for name in names:
        system = SYSTEMS[name]
        figures = [f"{result[f'{name}_{size}_cpu_us']:.0f}" for size in sizes]
        lines.append([system.title, *figures, *system.promises])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each measurement takes")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--outstanding", type=int, default=32, help="messages outstanding at each member")
    parser.add_argument("--members", default="5,20", help="how many members")
    parser.add_argument("--only", default=",".join(SYSTEMS), help=f"some of {', '.join(SYSTEMS)}")
    parser.add_argument(
        "--profile", type=Path, help="write the profile of one Precede member, and nothing else"
    )
    given = parser.parse_args()
    sizes = [int(size) for size in given.members.split(",")]
    if given.profile is not None:
        precede_group(False)(sizes[0], given.seconds, given.outstanding, str(given.profile))  # type: ignore[call-arg]
        return
    chosen = given.only.split(",")
    missing = [name for name in chosen if SYSTEMS[name].needs and find_spec(SYSTEMS[name].needs) is None]
    names = [name for name in chosen if name not in missing]
    result = measure(names, sizes, given.seconds, given.rounds, given.outstanding)
    if given.json:
        print(json.dumps({"table": table(result, names, sizes), **result, "not_installed": missing}))
        return
    load = f"{result['load_average']:.1f}"
    print(f"CPU per delivery, {given.outstanding} messages outstanding at each member, load {load}:\n")
    print(table(result, names, sizes))
    if missing:
        print(f"\nNot installed (pip install 'precede[bench]'): {', '.join(missing)}")


if __name__ == "__main__":
    main()
