"""Reading a scenario file's tables: typed, every key known, every mistake said with file, line and cause."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from precede.core.errors import BadInput
from precede.core.instants import Duration, Instant, parse_duration
from precede.sim.randomness import Distribution

T = TypeVar("T")
_MOST_CHARACTERS: Final = 1 << 24
_MOST_NODES: Final = 1_000_000


class Table:
    """One table of a scenario. `base` is the folder that paths are relative to."""

    def __init__(
        self,
        data: Mapping[str, Any],
        name: str = "world",
        file: str = "",
        text: str = "",
        base: Path | None = None,
    ) -> None:
        self.data = dict(data)
        self.name = name
        self.file = file
        self.base = base or Path()
        self._text = text
        self._read: dict[str, bool] = {}

    def check(self, known: Iterable[str]) -> None:
        """An unknown key is an error that names it and the nearest known one."""
        names = list(known)
        for key in self.data:
            if key not in names:
                near = get_close_matches(key, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
                raise self.wrong(key, f"unknown key in [{self.name}] ({hint})")

    def wrong(self, key: str, cause: str) -> BadInput:
        """The error to raise about a key."""
        return BadInput(f"{self.where(key)}{key}: {cause}")

    def where(self, key: str) -> str:
        """`file:line: ` of a key, as well as it can be told."""
        if not self.file:
            return ""
        if not self._text and self.file.endswith(".toml") and Path(self.file).is_file():
            self._text = Path(self.file).read_text(encoding="utf-8", errors="replace")
        section = ""
        for number, line in enumerate(self._text.splitlines(), 1):
            header = re.match(r"\s*\[+\s*([\w.]+)", line)
            section = header[1] if header else section
            if section == self.name and re.match(rf"\s*{re.escape(key)}\s*=", line):
                return f"{self.file}:{number}: "
        return f"{self.file}: "

    def check_read(self) -> None:
        """A key that nobody asked for, beside the others, is an error: it would change nothing."""
        for key in self.data:
            if key not in self._read:
                raise self.wrong(key, f"has no effect beside the other keys of [{self.name}]; leave it out")

    def has(self, key: str) -> bool:
        self._read[key] = True
        return key in self.data

    def raw(self, key: str, default: Any = None) -> Any:
        """As written."""
        self._read[key] = True
        return self.data.get(key, default)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"a text is wanted, not {value!r}")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(key, default)
        if value not in choices:
            raise self.wrong(key, f"{value!r} is none of {', '.join(choices)}")
        return value

    def whole(self, key: str, default: int | None = None, least: int = 0, most: int = 1 << 62) -> int:
        value = self._get(key, default)
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,40}", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(key, f"a whole number is wanted, not {value!r}")
        if value < least:
            raise self.wrong(key, f"{value} is less than {least}")
        if value > most:
            raise self.wrong(key, f"{value} is more than {most}")
        return value

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        """How many nodes: each costs memory, so a slip of the hand must not take the machine down."""
        return self.whole(key, default, least, _MOST_NODES)

    def number(
        self, key: str, default: float | None = None, least: float = 0.0, most: float = float("inf")
    ) -> float:
        value = self._get(key, default)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise self.wrong(key, f"a number is wanted, not {value!r}") from None
        if isinstance(value, bool) or not least <= number <= most:
            raise self.wrong(key, f"{value!r} is not between {least} and {most}")
        return number

    def truth(self, key: str, default: bool = False) -> bool:
        value = self._get(key, default)
        if isinstance(value, str) and value in ("true", "false"):
            return value == "true"
        if not isinstance(value, bool):
            raise self.wrong(key, f"true or false is wanted, not {value!r}")
        return value

    def duration(self, key: str, default: Duration | None = None) -> Duration:
        if self.raw(key) is None and default is not None:
            return default
        value = self._get(key, None)
        if not isinstance(value, str):
            raise self.wrong(key, f'a duration is wanted ("20s"), not {value!r}')
        return self._said(key, parse_duration, value)

    def maybe_duration(self, key: str) -> Duration | None:
        """A duration, or None when the key is absent or says `none`."""
        return None if self.raw(key, "none") == "none" else self.duration(key)

    def distribution(self, key: str, default: str | None = None) -> Distribution:
        value = self._get(key, default)
        if isinstance(value, str) and re.fullmatch(r"\s*[0-9.]+\s*(us|ms|s|min|h)\s*", value):
            return Distribution(self._said(key, parse_duration, value) / 1_000_000)
        return self._said(key, Distribution, value)

    def path(self, key: str) -> Path:
        path = self.base / self.text(key)
        if not path.exists():
            raise self.wrong(key, f"no such file: {path}")
        if path.is_dir():
            raise self.wrong(key, f"{path} is a folder; a file is wanted")
        return path

    def items(self, key: str) -> list[Any]:
        value = self._get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, f"a list is wanted, not {value!r}")
        return value

    def entries(self, key: str, fields: tuple[str, ...]) -> list[dict[str, Any]]:
        """A list of tables, each with no other fields than these."""
        found = self.items(key)
        for item in found:
            if not isinstance(item, dict):
                raise self.wrong(key, f"a list of {{ {', '.join(fields)} }} is wanted, and {item!r} is none")
            for field in item:
                if field not in fields:
                    near = get_close_matches(field, fields, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(fields)}"
                    raise self.wrong(key, f"{item!r}: unknown key {field!r} ({hint})")
        return found

    def field(self, key: str, item: Any, field: str) -> Any:
        """What an item of a listed table must have."""
        if not isinstance(item, dict) or field not in item:
            raise self.wrong(key, f"{item!r} has no {field!r}")
        return item[field]

    def instant(self, key: str, item: Any, field: str) -> Instant:
        """An instant that an item of a listed table must have."""
        return self._said(key, parse_duration, self.field(key, item, field))

    def _get(self, key: str, default: Any) -> Any:
        value = self.raw(key, default)
        if value is None:
            raise BadInput(f"{self.file + ': ' if self.file else ''}[{self.name}] needs {key!r}")
        return value

    def _said(self, key: str, read: Callable[[Any], T], value: Any) -> T:
        try:
            return read(value)
        except BadInput as error:
            raise self.wrong(key, str(error)) from None


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """A TOML file's tables and its text."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise BadInput(f"{path}: more than {_MOST_CHARACTERS:,} characters; not a scenario")
        return tomllib.loads(text), text
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file ({error.reason} at byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        place = f"{path}:{line[1]}" if line else str(path)
        raise BadInput(f"{place}: not TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: not TOML that can be read: {error}") from error


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV text that has at least these columns, each with its file and line."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            lacking = set(columns) - set(reader.fieldnames or ())
            if lacking:
                raise BadInput(f"{path}:1: no column {', '.join(sorted(lacking))}")
            for row in reader:
                yield f"{path}:{reader.line_num}", row
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not a CSV text: {error}") from error
