"""`precede play`: a simulated world on a local page, to touch while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.experiments.run import Run

PLAYED: Final = Path("played")


def command(
    scenario: Annotated[
        str | None, Argument(help="a built-in name, a TOML file, or a trace in the lake; none: lessons")
    ] = None,
    protocol: Annotated[str | None, Option(help="play this protocol instead of the scenario's")] = None,
    seed: Annotated[int | None, Option(help="one seed is one world")] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="a protocol option or a scenario key"),
    ] = None,
    lesson: Annotated[str | None, Option(help="begin with this lesson: fifo, causal, delta, ...")] = None,
    out: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="where worlds are saved (played), or a replay (played/NAME-again)"),
    ] = None,
    port: Annotated[int, Option(help="port on this machine; 0: any that is free")] = 0,
    browser: Annotated[bool, Option("--browser/--no-browser", help="open the page now")] = True,
    replay: Annotated[
        Path | None, Option(metavar="FOLDER", help="carry out a saved world again and compare")
    ] = None,
    export: Annotated[
        Path | None, Option(metavar="FOLDER", help="write a page of recorded worlds, without a server")
    ] = None,
    lake: Annotated[str, Option(metavar="DIR", help="where traces are looked up")] = "lake",
    as_json: Annotated[bool, Option("--json", help="print the result, or the address, as JSON")] = False,
) -> int:
    """Play a world in the browser: cut links, crash nodes, say messages, with order and without.

    The simulator and the protocols are the real ones. Save writes the scenario, what you did, and both event
    logs below --out. Without a scenario the page opens the first lesson.

    \b
    Example:
      precede play
      precede play city-bus --protocol causal_barrier
      precede play --replay played/vector_clock-1
      precede play --export site/play
    """
    from precede.cli.runs.simulate import is_of_the_one, read_settings
    from precede.core.errors import BadInput
    from precede.experiments.scenario import read_scenario

    if replay is not None and export is None:
        if scenario is not None or lesson is not None:
            raise BadInput("--replay carries out a saved world: name no scenario and no lesson")
        return _replay(replay, out or PLAYED / f"{replay.resolve().name}-again", as_json)
    if export is not None:
        return _export(export, replay, as_json)
    if scenario is not None and lesson is not None:
        raise BadInput("name a scenario or a lesson, not both")
    if scenario is None and (protocol is not None or seed is not None or settings):
        raise BadInput("--protocol, --seed and --set change a scenario: name one, such as small-office")
    if scenario is not None and scenario.endswith(".txt") and not is_of_the_one(Path(scenario)):
        raise BadInput(f"{scenario}: a scenario text is played by precede simulate; play takes a TOML file")
    run = None
    if scenario is not None:
        run = read_scenario(scenario, protocol, seed, read_settings(settings or []), lake)
    return _serve(run, lesson, out or PLAYED, port, browser, as_json)


def _serve(run: Run | None, lesson: str | None, out: Path, port: int, browser: bool, as_json: bool) -> int:
    """Serve the page until Ctrl-C."""
    from precede.play.game import Game
    from precede.play.server import Server

    server = Server(Game(run, out, lesson), port)
    opened = f"Open {server.url}\nEnd with Ctrl-C. Worlds are saved below {out}/."
    print(json.dumps({"url": server.url, "out": str(out)}) if as_json else opened, flush=True)
    if browser:
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()
    return 0


def _replay(folder: Path, again: Path, as_json: bool) -> int:
    """Carry out a saved world again; return 1 if a log has other bytes than the saved one."""
    from precede.cli.progress import working
    from precede.play.saving import judged, load, replay

    run, record = load(folder)
    with working(f"playing {len(record.inputs)} inputs again"):
        same = replay(folder, again)
        verdicts = judged(run, again)
    if as_json:
        sides = {
            name: {"same_bytes": same[name], "order": verdict.order, "verdict": verdict.verdict}
            | {"violations": verdict.violations, "folder": str(again / name)}
            for name, verdict in verdicts.items()
        }
        print(json.dumps(sides, indent=2))
        return 1 if False in same.values() else 0
    words = {True: "the same bytes", False: "OTHER BYTES", None: "no saved log to compare with"}
    for name, verdict in verdicts.items():
        print(f"{name:<9}  {words[same[name]]}; {verdict.order} order: {verdict.verdict}")
    print(f"The logs are in {again}/ordered and {again}/unordered.")
    return 1 if False in same.values() else 0


def _export(folder: Path, saved: Path | None, as_json: bool) -> int:
    """Write the page of recorded worlds: every lesson, and a saved world if one is named."""
    from precede.cli.progress import working
    from precede.play.export import write_export

    with working("recording worlds"):
        names = write_export(folder, saved)
    if as_json:
        print(json.dumps({"page": str(folder / "index.html"), "worlds": names}))
        return 0
    print(f"{len(names)} recorded worlds. Open {folder}/index.html")
    return 0
