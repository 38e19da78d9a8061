"""`precede repro`: the smallest world in which an ordering rule misorders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from precede.cli.parameters import Option
from precede.core.errors import BadInput

if TYPE_CHECKING:
    from precede.experiments.swarm.repro import Misorder, Played, Repro

_WORDS: Final = ("above", "first", "any")


def command(
    rule: Annotated[str, Option(help="the rule: arrival, timestamp, lamport, sds or another ordering")],
    skew: Annotated[str, Option(metavar="120s", help="how far clocks disagree at most")] = "0s",
    kind: Annotated[
        str,
        Option(
            metavar="above|first|any",
            help="an answer above its question, or shown before it; any: the first of these that is found",
        ),
    ] = "any",
    worlds: Annotated[int, Option(min=1, max=100_000, help="how many worlds of each size")] = 400,
    seed: Annotated[int, Option(min=0, help="the seed of the first world")] = 0,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="folder for the files (default: out/repro-RULE)")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="print the test data as one JSON object")] = False,
) -> int:
    """Find the smallest world in which a rule shows an answer before or above its question.

    Worlds are searched from two nodes and two messages on, and the first that misorders is shrunk. The folder
    gets the world as a scenario, its log, a picture of it, and the data of a test for your own app with that
    test in Python, Kotlin and Swift. The same world is run under delta_causal. The exit code is 1 if no world
    misorders.

    \b
    Example:
      precede repro --rule timestamp --skew 120s
      precede repro --rule lamport --kind first --out out/late-question
    """
    from precede.cli.progress import working
    from precede.core.instants import parse_duration
    from precede.experiments.swarm.repro import MISORDERS, find_repro
    from precede.experiments.swarm.repro_case import case_of

    if kind not in _WORDS:
        raise BadInput(f"--kind: {kind!r} is none of {', '.join(_WORDS)}")
    misorders: tuple[Misorder, ...] = tuple(
        one for one in MISORDERS if kind in ("any", one.removeprefix("answer_"))
    )
    with working(f"searching for a world in which {rule} misorders", "worlds") as progress:
        repro = find_repro(rule, parse_duration(skew), seed, worlds, misorders, progress)
    if repro is None:
        print(json.dumps({"rule": rule, "misorder": None}) if as_json else f"{rule}: no world misorders")
        return 1
    folder = out or Path("out") / f"repro-{rule.replace(':', '-')}"
    case = case_of(repro) | {"skew": skew}
    files = write_repro(repro, case, folder)
    if as_json:
        print(json.dumps(case | {"files": [str(file) for file in files]}))
        return 0
    print(f"{rule} misorders in world {repro.tried} of the search: {case['says']}")
    print(f"delta_causal in the same world: display order {repro.ordered.verdict.verdict}")
    print("\n".join(f"  {file}" for file in files))
    print(f"Again: precede verify {files[1]} --order display")
    return 0


def write_repro(repro: Repro, case: dict[str, object], folder: Path) -> list[Path]:
    """Write the files of a repro and return their paths."""
    import pyarrow.csv as pv

    from precede.experiments.bundle import scenario_text

    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "world.toml": scenario_text(repro.rule.run),
        "test.json": json.dumps(case, indent=2) + "\n",
        "picture.svg": draw(repro, case),
    }
    logs = {"log.csv": repro.rule, "log-delta_causal.csv": repro.ordered}
    columns = [
        *("node", "incarnation", "step", "at_us", "clock_us", "kind"),
        *("message_source", "message_incarnation", "message_number", "deadline_us", "reason"),
    ]
    for name, played in logs.items():
        pv.write_csv(played.events.select(columns), folder / name)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in ("world.toml", *logs, "test.json", "picture.svg")]


def draw(repro: Repro, case: dict[str, object]) -> str:
    """Draw the world under the rule and under delta_causal."""
    from precede.experiments.swarm.repro_case import scene_of
    from precede.report.screens import Event, Panel, picture

    def panel(title: str, played: Played, reader: str, wrong: list[str]) -> Panel:
        scene = scene_of(played.events)
        written = [Event(*event) for event in scene.written]
        return Panel(
            title, scene.nodes, written, [Event(*e) for e in scene.shown], scene.screens, reader, wrong
        )

    pairs = case["question_above_answer"]
    assert isinstance(pairs, list)
    return picture(
        str(case["says"]),
        [
            panel(f"{case['rule']}, skew {case['skew']}", repro.rule, str(case["reader"]), pairs[0]),
            panel("the same world under delta_causal", repro.ordered, "", []),
        ],
    )
