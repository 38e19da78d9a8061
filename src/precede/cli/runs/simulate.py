"""`precede simulate`: one run, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from precede.cli.parameters import Argument, Option
from precede.core.instants import SECOND, Instant

if TYPE_CHECKING:
    from precede.cli.progress import Line
    from precede.sim.world import World


def command(
    scenario: Annotated[str, Argument(help="a built-in name, a TOML file, or a trace in the lake")],
    protocol: Annotated[str | None, Option(help="run this protocol instead of the scenario's")] = None,
    seed: Annotated[int | None, Option(help="one seed is one world")] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="a protocol option or a scenario key"),
    ] = None,
    out: Annotated[Path | None, Option(help="folder for the log (default: out/RUN_ID)")] = None,
    as_json: Annotated[bool, Option("--json", help="print the measures as one JSON object")] = False,
    lake: Annotated[str, Option(metavar="DIR", help="where traces are looked up")] = "lake",
    rewrite: Annotated[bool, Option(help="scenario texts: write what really followed into the file")] = False,
) -> int:
    """Run one scenario and write its event log; or play a scenario text (.txt) against what it expects.

    Writes events.parquet, gauges.parquet and run.json (everything needed to run it again).

    \b
    Example:
      precede simulate small-office --protocol vector_clock --seed 7 --out out/office
      precede verify out/office
      precede simulate bus --protocol causal_barrier --set range=100      (a trace in the lake)
      precede simulate scenarios/answer-before-question.txt
      precede simulate default_settings.txt                              (settings of The ONE)
    """
    if scenario.endswith(".txt") and not is_of_the_one(Path(scenario)):
        return _play(Path(scenario), protocol, rewrite)
    from precede.cli.progress import working
    from precede.core.errors import BadInput
    from precede.experiments.measuring import carry_out_measured
    from precede.experiments.scenario import read_scenario

    run = read_scenario(scenario, protocol, seed, read_settings(settings or []), lake)
    folder = out if out is not None else Path("out") / run.id
    with working(f"simulating {scenario} with {run.protocol}", "simulated seconds") as progress:
        outcome, measured = carry_out_measured(
            run, folder, lambda world, end: follow_world(progress, world, end)
        )
        measures = {"run_id": outcome.run_id, **measured, "cpu_s": round(outcome.cpu_s, 3)}
    measures.update(outcome.counters)
    if outcome.refusal and not measures["broadcasts"]:
        raise BadInput(f"{scenario}: {run.protocol} refused every message: {outcome.refusal}")
    if as_json:
        print(json.dumps(measures, indent=2))
        return 0
    print(f"{outcome.nodes} nodes, {run.protocol} (order: {outcome.order}), seed {run.seed}")
    for name, unit in _SHOWN.items():
        if measures.get(name) is not None:
            print(f"  {name:<22} {_written(measures[name], unit)}")
    for setting in run.unread:
        print(f"  not read: {setting}")
    if outcome.note:
        print(f"  note: {outcome.note}")
    if outcome.refusal:
        print(f"  the first refusal: {outcome.refusal}")
    print(f"{outcome.rows:,} rows in {folder}/events.parquet")
    print(f"Next: precede verify {folder}")
    return 0


def follow_world(progress: Line, world: World, end: Instant) -> None:
    """Let the line of progress ask a world for its time."""
    progress.follow(lambda: world.now // SECOND, end // SECOND)


def is_of_the_one(path: Path) -> bool:
    """Return whether a file has settings of The ONE."""
    from precede.experiments.one_settings import is_one_settings

    return path.is_file() and is_one_settings(path.read_text(encoding="utf-8", errors="replace"))


def _play(path: Path, protocol: str | None, rewrite: bool) -> int:
    """Play a scenario text, print where the effects differ from those it expects, and return 1 if any do.

    With `rewrite`, write the real effects into the file instead, and return 0.
    """
    from precede.experiments.stories.player import mismatches, play
    from precede.experiments.stories.text import read_text, write_text
    from precede.protocols import registry

    text = read_text(path)
    shown = play(text, registry.find(protocol) if protocol else None)
    wrong = mismatches(text, shown)
    if rewrite:
        path.write_text(write_text(text, shown), encoding="utf-8")
        print(f"{path}: {len(wrong)} of {len(shown)} steps rewritten")
        return 0
    for item in wrong:
        print(f"{path}:{item.line}: {item.step}")
        for line in item.expected:
            print(f"  - {line}")
        for line in item.shown:
            print(f"  + {line}")
    print(f"{path}: {len(shown)} steps, {len(wrong)} with other effects than expected")
    return 1 if wrong else 0


_SHOWN = {
    "broadcasts": "",
    "receptions": "",
    "deliveries": "",
    "own_deliveries": "",
    "expired": "",
    "transit_us_mean": "us",
    "wait_us_mean": "us",
    "age_us_mean": "us",
    "packets": "",
    "control_bytes_mean": "",
    "refused": "",
}


def _written(value: object, unit: str) -> str:
    if isinstance(value, float):
        return f"{value / 1e6:,.3f} s" if unit == "us" else f"{value:,.1f}"
    return f"{value:,}"


def read_settings(written: list[str]) -> dict[str, str]:
    """Read settings that are written as `KEY=VALUE` on the command line. Raise BadInput if one is not."""
    from precede.core.errors import BadInput

    settings = {}
    for item in written:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {item}: write KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings
