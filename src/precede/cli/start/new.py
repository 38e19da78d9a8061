"""`precede new`: a small example that works, with its test, in the user's folder."""

import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

from precede.cli.parameters import Argument, Option
from precede.cli.start.installation import install_line, installer
from precede.core.errors import BadInput

KINDS: Final = {
    "scenario": "a world of four people who meet, as TOML and CSV",
    "protocol": "a causal broadcast (docs/guides/add-a-protocol.md explains it)",
    "routing": "a routing for delay-tolerant networks (docs/guides/add-a-routing.md explains it)",
    "app": "a list that the members of a group share over the local network",
    "trace": "records of your own, turned into contacts and simulated",
}
_PLACEHOLDER: Final = "NAME"


def command(
    kind: Annotated[str, Argument(help="scenario, protocol, routing, app or trace")],
    name: Annotated[str | None, Argument(help="its name; default: my_KIND")] = None,
    folder: Annotated[Path, Option("--in", help="the folder to write to")] = Path(),
    as_json: Annotated[bool, Option("--json", help="print the files as one JSON object")] = False,
) -> None:
    """Write a small example that works, with its test: a scenario, protocol, routing, app or trace.

    No file is overwritten.

    \b
    Example:
      precede new protocol
      precede new scenario sunday --in worlds
    """
    chosen = name or f"my_{kind}"
    written = write_example(kind, chosen, folder)
    test = next(path for path in written if path.name.startswith("test_"))
    if as_json:
        result = {"kind": kind, "name": chosen, "files": [str(path) for path in written], "test": str(test)}
        print(json.dumps(result, indent=2))
        return
    for path in written:
        print(path)
    print(f"\n{KINDS[kind]}. Its test: python -m pytest {test}")
    for line in lines_before_the_test(kind):
        print(f"First: {line}")


def lines_before_the_test(kind: str) -> list[str]:
    """Return the lines that install what the test of an example needs and this environment lacks."""
    lines = [] if find_spec("pytest") else [f"{installer()} pytest"]
    return lines if kind != "app" or find_spec("nacl") else [*lines, install_line("runtime")]


def write_example(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the files of an example, or nothing if a file exists or the name fits no Python module."""
    if kind not in KINDS:
        raise BadInput(_unknown_kind(kind))
    if not name.isidentifier() or not name.isascii():
        raise BadInput(f"{name!r} is no name for a Python module: use letters, digits and _")
    templates = files("precede.cli.start") / "templates" / kind
    texts = {
        folder / template.name.removesuffix(".txt").replace(_PLACEHOLDER, name): template.read_text(
            encoding="utf-8"
        ).replace(_PLACEHOLDER, name)
        for template in sorted(templates.iterdir(), key=lambda template: template.name)
    }
    for path in texts:
        if path.exists():
            raise BadInput(f"{path} exists and is not overwritten: choose another name or --in another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    return list(texts)


def _unknown_kind(kind: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(kind, KINDS, n=1)
    return f"nothing called {kind!r} to make " + (
        f"(did you mean {near[0]!r}?)" if near else f"(known: {', '.join(KINDS)})"
    )
