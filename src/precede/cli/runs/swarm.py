"""`precede swarm`: seeded worlds that break things, then heal, and must hold."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import asdict

from precede.cli.data.spark import ConfOption, MasterOption, session_for
from precede.cli.parameters import Option


def command(
    protocol: Annotated[list[str] | None, Option(help="only this protocol; may be repeated")] = None,
    over: Annotated[
        list[str] | None, Option(help="run the ordering over this routing; may be repeated")
    ] = None,
    worlds: Annotated[int, Option(min=1, help="how many worlds")] = 500,
    seed: Annotated[int | None, Option(help="the first world's seed; default: fresh, and printed")] = None,
    jobs: Annotated[int, Option(min=0, help="processes; 0: one per core")] = 0,
    record: Annotated[Path | None, Option(help="append failing worlds to this file")] = None,
    shrink: Annotated[bool, Option(help="make a failing world small before it is shown")] = True,
    lake: Annotated[
        str | None,
        Option(metavar="DIR", help="add the results to the table `worlds` of this lake, on Spark"),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    as_json: Annotated[
        bool, Option("--json", help="print the counts as one JSON object, the rest on stderr")
    ] = False,
) -> int:
    """Draw worlds from seeds, inject faults, heal them, and check safety and liveness of every one.

    The last line has the counts. The exit code is 1 if any count other than worlds is not 0. With --lake, the
    worlds that the lake has are not run again, and the counts are those of all worlds of these protocols in it.

    \b
    Example:
      precede swarm --protocol vector_clock --worlds 200
      precede swarm --protocol vector_clock --worlds 1 --seed 4711      (one world again)
      precede swarm --protocol fifo --over prophet --worlds 50
      precede swarm --worlds 100000 --master spark://HOST:7077          (on a cluster)
      precede swarm --worlds 100000 --seed 1 --lake lake                (results accumulate)
    """
    from precede.experiments.swarm.plan import DRAWERS, ORDERINGS, draw_plan, find_drawer
    from precede.experiments.swarm.swarm import spread

    names = protocol or list(DRAWERS)
    if over:
        names = [f"{name}+{routing}" for name in protocol or ORDERINGS for routing in over]
    for name in names:
        find_drawer(name)
    first = seed if seed is not None else int.from_bytes(os.urandom(5), "big")
    with redirect_stdout(sys.stderr if as_json else sys.stdout):
        print(f"swarm: seed={first} worlds={worlds} protocols={','.join(names)}", flush=True)
        if worlds == 1:
            print(_drawn(draw_plan(names[0], first)), flush=True)
        work = spread(names, worlds, first)
        if lake is not None:
            results = _into_lake(work, lake, master, conf)
        else:
            results = _results(work, jobs) if master is None else _on_spark(work, master, conf)
        tally, failed = _count(results, worlds, shrink, record)
        if lake is not None:
            tally = _accumulated(lake, names, tally)
    counts = {"seed": first, "protocols": names, **asdict(tally), "failed": failed}
    print(json.dumps(counts) if as_json else tally.line())
    return 0 if tally.clean else 1


def _count(
    results: Iterator[Any], worlds: int, shrinking: bool, record: Path | None
) -> tuple[Any, list[dict[str, Any]]]:
    """Show each failing world; return the counts of all worlds, and protocol and seed of the failing ones."""
    from precede.cli.progress import working
    from precede.experiments.swarm.swarm import Tally

    tally = Tally()
    failed = []
    with working("swarm", "worlds", worlds) as progress:
        for result in results:
            tally.add(result)
            progress(tally.worlds)
            if result.failed:
                failed.append({"protocol": result.protocol, "seed": result.seed})
                with progress.aside():
                    _show(result, shrinking, record)
    return tally, failed


def _results(work: list[tuple[str, int]], jobs: int) -> Iterator[Any]:
    from precede.experiments.swarm.swarm import run_seed, run_seeds

    count = min(jobs or os.cpu_count() or 1, len(work))
    if count == 1:
        yield from run_seeds(work)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        chunk = max(1, min(20, len(work) // (4 * count)))
        yield from pool.map(run_seed, *zip(*work, strict=True), chunksize=chunk)


def _on_spark(work: list[tuple[str, int]], master: str, conf: list[str] | None) -> Iterator[Any]:
    from precede.pipeline.sweeps.swarm import swarm_results

    with session_for(master, conf, "swarm", light=True) as session:
        yield from swarm_results(session, work)


def _into_lake(
    work: list[tuple[str, int]], lake: str, master: str | None, conf: list[str] | None
) -> Iterator[Any]:
    from precede.lake.layout import Lake
    from precede.pipeline.sweeps.worlds import run_worlds

    with session_for(master, conf, "swarm", light=True) as session:
        yield from run_worlds(Lake(lake), session, work)


def _accumulated(lake: str, names: list[str], tally: Any) -> Any:
    """Print what the lake has of each protocol, and return the counts of all of them."""
    from precede.experiments.swarm.swarm import Tally
    from precede.lake.layout import Lake
    from precede.pipeline.sweeps.worlds import count_worlds

    print(f"{tally.worlds:,} worlds were run now; table worlds in {Lake(lake).location}:")
    total = Tally()
    for name, counted in count_worlds(Lake(lake), names).items():
        print(f"  {name}: {counted.line()}")
        total.add(counted)
    return total


def _show(result: Any, shrinking: bool, record: Path | None) -> None:
    """Print a failing world: its seed, draw and findings. Append its seed to the file `record`, if given.

    If `shrinking`, also make the world small, and print it with a text that shows the failure.
    """
    from precede.eventlog.sinks import TableSink
    from precede.experiments.run import prepare
    from precede.experiments.stories.from_log import tell_log
    from precede.experiments.swarm.plan import draw_plan, find_drawer
    from precede.experiments.swarm.shrink import shrink
    from precede.experiments.swarm.swarm import replay_line
    from precede.sim.world import World

    drawer = find_drawer(result.protocol)
    plan = draw_plan(result.protocol, result.seed, drawer)
    print(f"\nFAILED {result.protocol} seed={result.seed}   again: {replay_line(result)}")
    print(_drawn(plan))
    print("\n".join(result.remarks), flush=True)
    if record is not None:
        with record.open("a", encoding="utf-8") as file:
            file.write(f"{result.protocol} {result.seed}\n")
    if not shrinking:
        return
    print("shrinking ...", file=sys.stderr)
    plan, smallest = shrink(plan, drawer)
    print("shrunk to:", _drawn(plan))
    print("\n".join(smallest.remarks))
    if not any(remark.startswith("Traceback") for remark in smallest.remarks):
        sink = TableSink()
        prepared = prepare(plan.run, sink, make_world=World)
        prepared.world.schedule(plan.heal_at, prepared.world.heal, plan.dead)
        prepared.world.run(plan.end)
        prepared.recorder.flush()
        print(tell_log(plan, sink.events()), flush=True)


def _drawn(plan: Any) -> str:
    import msgspec

    return f"  draw: {msgspec.json.encode(msgspec.to_builtins(plan)).decode()}"
