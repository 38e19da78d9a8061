"""Scenario texts: a worked example as a page of plain sentences, read and written.

Steps begin at the left margin; the lines that must follow from a step are indented below it:

    protocol: vector_clock
    nodes: A B C

    A broadcasts question
      A delivers question
    B receives question from A
      B delivers question

`docs/reference/scenario-texts.md` lists every sentence. `player` plays them.
"""

import re
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Duration, parse_duration
from precede.files.inputs import open_regular

_MOST_BYTES: Final = 1 << 24

Verb: TypeAlias = Literal[
    "broadcasts",
    "receives",
    "misses",
    "enters",
    "meets",
    "parts",
    "crashes",
    "restarts",
    "leaves",
    "at",
    "after",
    "arrive",
    "clock",
]


class Step(Struct, frozen=True):
    """One sentence at the left margin, its line number, and the indented lines below it."""

    line: int
    text: str
    verb: Verb
    node: str = ""
    message: str = ""
    peer: str = ""
    to: tuple[str, ...] | None = None
    time: Duration | None = None
    count: int | None = None
    keep: bool = True
    expected: tuple[str, ...] = ()


class ScenarioText(Struct, frozen=True):
    """A whole page. `head` has the lines before the first step, which a rewritten page keeps."""

    file: str
    protocol: str
    nodes: tuple[str, ...]
    options: dict[str, Any]
    head: tuple[str, ...]
    steps: tuple[Step, ...]
    comments: dict[int, tuple[str, ...]]
    stations: tuple[str, ...] = ()
    """On a page about radio cells: the stations, each wired to the next. They are the first nodes."""


_TO: Final = r"(?: to (?P<to>(?:(?!for\b)\S+ ?)+))?"
_FOR: Final = r"(?: ?for (?P<time>\S+))?"
_SENTENCES: Final[tuple[tuple[Verb, re.Pattern[str]], ...]] = (
    ("broadcasts", re.compile(r"(?P<node>\S+) broadcasts (?P<message>\S+)" + _TO + _FOR)),
    ("receives", re.compile(r"(?P<node>\S+) receives (?P<message>\S+)(?: from (?P<peer>\S+))?")),
    ("misses", re.compile(r"(?P<node>\S+) misses (?P<message>\S+)(?: from (?P<peer>\S+))?")),
    ("enters", re.compile(r"(?P<node>\S+) enters (?P<peer>\S+)")),
    ("meets", re.compile(r"(?P<node>\S+) meets (?P<peer>\S+)")),
    ("parts", re.compile(r"(?P<node>\S+) parts from (?P<peer>\S+)")),
    ("crashes", re.compile(r"(?P<node>\S+) crashes(?: after (?P<count>\d+) steps?)?")),
    ("restarts", re.compile(r"(?P<node>\S+) restarts(?P<empty> empty)?")),
    ("leaves", re.compile(r"(?P<node>\S+) leaves")),
    ("at", re.compile(r"at (?P<time>\S+)")),
    ("after", re.compile(r"after (?P<time>\S+)")),
    ("arrive", re.compile(r"everything arrives")),
    ("clock", re.compile(r"(?P<node>\S+)'s clock is (?P<time>\S+) (?P<way>ahead|behind)")),
)


def read_text(path: Path) -> ScenarioText:
    """Read a scenario text. Raise `BadInput` with file and line for an unknown sentence."""
    try:
        with open_regular(path) as file:
            lines = file.read(_MOST_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    return parse_text(lines, str(path))


def parse_text(lines: list[str], file: str) -> ScenarioText:
    """Read a scenario text from its lines. Raise `BadInput` if it is wrong; the error names `file`."""
    header: dict[str, str] = {}
    steps: list[Step] = []
    comments: dict[int, tuple[str, ...]] = {}
    head: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].rstrip()
        setting = re.fullmatch(r"(protocol|nodes|stations|options):\s*(.*)", words)
        if setting and not steps:
            header[setting[1]] = setting[2].strip()
            head.append(line)
        elif not words:
            if steps:
                comments[len(steps)] = (*comments.get(len(steps), ()), line)
            else:
                head.append(line)
        elif line[0].isspace():
            if not steps:
                raise BadInput(f"{file}:{number}: an indented line before the first step")
            last = steps[-1]
            steps[-1] = _with_expected(last, words.strip())
        else:
            steps.append(_step(words, number, file))
    for key in ("protocol", "nodes"):
        if key not in header:
            raise BadInput(f"{file}: no line `{key}: ...`")
    stations = tuple(header.get("stations", "").split())
    nodes = (*stations, *header["nodes"].split())
    _check_nodes(steps, nodes, file)
    return ScenarioText(
        file,
        header["protocol"],
        nodes,
        _options(header.get("options", ""), file),
        tuple(head),
        tuple(steps),
        comments,
        stations,
    )


def write_text(text: ScenarioText, shown: list[list[str]]) -> str:
    """Return the page, with the lines that really followed (`shown`) below each step."""
    lines = list(text.head)
    for place, (step, follows) in enumerate(zip(text.steps, shown, strict=True), 1):
        lines.append(step.text)
        lines += [f"  {line}" for line in follows]
        lines += text.comments.get(place, ())
    return "\n".join(lines) + "\n"


def _with_expected(step: Step, line: str) -> Step:
    return msgspec.structs.replace(step, expected=(*step.expected, line))


def _step(words: str, number: int, file: str) -> Step:
    for verb, pattern in _SENTENCES:
        match = pattern.fullmatch(words)
        if match is not None:
            return _read(verb, match.groupdict(), words, number, file)
    raise BadInput(f"{file}:{number}: unknown sentence: {words!r}")


def _read(verb: Verb, groups: dict[str, str | None], words: str, number: int, file: str) -> Step:
    try:
        time = parse_duration(written) if (written := groups.get("time")) else None
    except BadInput as error:
        raise BadInput(f"{file}:{number}: {error}") from None
    if groups.get("way") == "behind" and time is not None:
        time = -time
    return Step(
        line=number,
        text=words,
        verb=verb,
        node=groups.get("node") or "",
        message=groups.get("message") or "",
        peer=groups.get("peer") or "",
        to=tuple((groups.get("to") or "").split()) or None,
        time=time,
        count=int(groups["count"] or 0) if groups.get("count") else None,
        keep=not groups.get("empty"),
    )


def _check_nodes(steps: list[Step], nodes: tuple[str, ...], file: str) -> None:
    for step in steps:
        for name in (step.node, step.peer, *(step.to or ())):
            if name and name not in nodes:
                raise BadInput(f"{file}:{step.line}: no node {name!r} (nodes: {' '.join(nodes)})")


def _options(written: str, file: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in written.split(","))):
        key, equals, value = item.partition("=")
        if not equals:
            raise BadInput(f"{file}: options: write key = value, not {item!r}")
        options[key.strip()] = value.strip()
    return options
