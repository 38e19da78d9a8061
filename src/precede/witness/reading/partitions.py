"""Columns in folder names: `run_id=r1/node=7/part-0.parquet`, as Spark's `partitionBy` writes them.

A value in a folder name is text, with special characters as `%20`. A column of the files goes before it.
"""

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


class Piece(Struct, frozen=True):
    """A Parquet file of a log, and the columns that its folder names give."""

    path: Path
    named: dict[str, str | None] = {}


def pieces_in(folder: Path) -> list[Piece]:
    """Find the Parquet files in a folder and below it, without hidden ones.

    Hidden are names, also of folders, that begin with a dot, or with an underscore and have no `=`.
    """
    paths = sorted(folder.rglob("*.parquet"))
    below = [(path, path.relative_to(folder).parts) for path in paths]
    return [Piece(path, _named(parts[:-1])) for path, parts in below if not any(map(_hidden, parts))]


def _hidden(part: str) -> bool:
    return part[0] == "." or (part[0] == "_" and "=" not in part)


def _named(folders: tuple[str, ...]) -> dict[str, str | None]:
    pairs = [folder.partition("=") for folder in folders]
    written = [(unquote(name), value) for name, equals, value in pairs if name and equals]
    return {name: None if value == _NULL else unquote(value) for name, value in written}
