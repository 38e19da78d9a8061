"""The tables of a scenario file as they are written: their values, and where in the file each key stands."""

import csv
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.settings import nearest
from precede.files.inputs import open_regular

_MOST_CHARACTERS: Final = 1 << 24


class Table:
    """One table as written, for `keys.read_table`. `base` is the folder that paths are relative to."""

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

    def check(self, keys: Iterable[str]) -> None:
        """Raise `BadInput` if a key of the table is unknown. It names the key and the nearest known one."""
        names = list(keys)
        for key in self.data:
            if key not in names:
                raise self.wrong(key, f"unknown key in [{self.name}] {nearest(key, names)}")

    def wrong(self, key: str, cause: str) -> BadInput:
        """Return the error about a key, for the caller to raise: `file:line: key: cause`."""
        return BadInput(f"{self.where(key)}{key}: {cause}")

    def lacks(self, noun: str) -> BadInput:
        return BadInput(f"{self.file + ': ' if self.file else ''}[{self.name}] needs {noun}")

    def where(self, key: str) -> str:
        """Return `file:line: ` of a key, without the line if the text lacks it; empty if there is no file."""
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

    def existing_file(self, key: str, path: Path) -> Path:
        """Return a path under `base`. Raise `BadInput` about the key if there is no such file."""
        path = self.base / path
        if not os.path.exists(path):  # that of `Path` raises for a name that is too long
            raise self.wrong(key, f"no such file: {path}")
        if path.is_dir():
            raise self.wrong(key, f"expected a file, and {path} is a folder")
        return path

    def node(self, key: str, name: Any, names: Sequence[str]) -> NodeId:
        if str(name) not in names:
            raise self.wrong(key, f"no node {name!r} (there are {names[0]} to {names[-1]})")
        return list(names).index(str(name))


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """Read a TOML file; return its tables and its text. Raise `BadInput` if that fails."""
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8") as file:
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
        raise BadInput(f"{path}: this TOML cannot be read: {error}") from error


def _row_of_other_width(names: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    """Return a row as `csv.DictReader` does: absent values are None, additional ones are under None."""
    row: dict[Any, Any] = dict.fromkeys(names)
    row.update(zip(names, values, strict=False))
    if len(values) > len(names):
        row[None] = list(values[len(names) :])
    return row


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV file, each after its `file:line`. Raise `BadInput` if a column is missing."""
    try:
        with TextIOWrapper(open_regular(path), newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            names = list(reader.fieldnames or ())
            missing = set(columns) - set(names)
            if missing:
                raise BadInput(f"{path}:1: no column {', '.join(sorted(missing))}")
            rows = reader.reader  # `DictReader` takes three times as long for a row
            for values in rows:
                if len(values) == len(names):
                    yield f"{path}:{rows.line_num}", dict(zip(names, values, strict=True))
                elif values:
                    yield f"{path}:{rows.line_num}", _row_of_other_width(names, values)
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not a CSV file: {error}") from error
