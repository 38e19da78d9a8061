"""What only a terminal gets: colours, and the line of a file under which a caret marks the mistake.

`NO_COLOR` in the environment turns colours off. In a pipe there are none, and an error is one line.
"""

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TextIO

Colour = Literal["red", "green", "yellow", "bold"]

_CODES: Final[dict[Colour, str]] = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}
_PLACES: Final = (
    re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+): (?P<cause>.*)$"),
    re.compile(r"^(?P<file>[^\s,][^,]*), (?:row \d+ \()?line (?P<line>\d+)\)?: (?P<cause>.*)$"),
)
_COLUMN: Final = re.compile(r"column (\d+)\)?$")
_QUOTED: Final = re.compile(r"'([^']+)'")
_KEY: Final = re.compile(r"^([\w.-]+)[: ]")
_WIDTH: Final = 100
_LONGEST: Final = 10_000
"""The longest line of which a part is shown, in characters."""


def is_coloured(stream: TextIO) -> bool:
    """Return whether colours may be written to a stream."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: Colour, stream: TextIO) -> str:
    """Return the text in a colour, if the stream is a terminal that shows colours."""
    return f"\033[{_CODES[colour]}m{text}\033[0m" if is_coloured(stream) else text


def excerpt(message: str) -> list[str]:
    """Return the line of a file that an error is about, and a line with a caret under the place.

    Empty if the error names no line of a text file. What is not printable in it is replaced.
    """
    place = next((match for pattern in _PLACES if (match := pattern.match(message))), None)
    if place is None:
        return []
    line = _line(Path(place["file"]), int(place["line"]))
    if line is None:
        return []
    begin, length = _place_in(line, place["cause"])
    shift = max(0, begin + length - _WIDTH)
    shown = "".join(letter if letter.isprintable() else " " for letter in line[shift : shift + _WIDTH])
    margin = " " * len(place["line"])
    marks = "^" * max(1, min(length, _WIDTH - (begin - shift)))
    return [f"  {place['line']} | {shown}", f"  {margin} | {' ' * (begin - shift)}{marks}"]


def _line(path: Path, number: int) -> str | None:
    """Return a line of a text file; None if there is no such line, or it is too long or no text."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            line = next(islice(file, number - 1, None), None)
    except (OSError, UnicodeDecodeError):
        return None
    return None if line is None or len(line) > _LONGEST else line.rstrip("\r\n")


def _place_in(line: str, cause: str) -> tuple[int, int]:
    """Return where in a line the cause is, and how long: a column, a quoted value, a key, else all."""
    column = _COLUMN.search(cause)
    if column is not None:
        return max(0, min(int(column[1]) - 1, len(line))), 1
    said = cause.partition("(did you mean")[0]
    for word in (*_QUOTED.findall(said), *_KEY.findall(said)):
        at = line.find(word)
        if at >= 0:
            return at, len(word)
    begin = len(line) - len(line.lstrip())
    return begin, len(line.strip())
