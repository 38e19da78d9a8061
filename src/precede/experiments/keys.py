"""The keys of scenario tables, declared as structs: how they are described and how a written table is read.

    class StallItem(Struct, frozen=True, kw_only=True):
        node: Annotated[str, key("name of the node")]
        at: Annotated[Instant, instant("when it stops")]

    class FaultTable(Struct, frozen=True, kw_only=True):
        drift_ppm: Annotated[int, key("fastest drift of a clock", most=999_999)] = 0
        stalls: Annotated[tuple[StallItem, ...], items(StallItem, "nodes that stop for a while")] = ()

Unlike a protocol's option, a key may have no default: then it must be written. A mistake is an error with
file, line, key and cause.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from precede.core.instants import SECOND, Duration, parse_duration
from precede.core.settings import Note, Setting, nearest, number, settings_in, whole
from precede.experiments.tables import Table
from precede.lake.integrity import local_file
from precede.lake.storage import is_url
from precede.sim.randomness import Distribution

TableT = TypeVar("TableT", bound=Struct)

MOST_NODES: Final = 1_000_000
"""The most nodes that a key may ask for: a typing error must not exhaust the memory of the machine."""

_A_DURATION: Final = re.compile(r"\s*[0-9.]+\s*(us|ms|s|min|h)\s*")


def key(
    help: str,
    *,
    least: float = 0,
    most: float | None = None,
    read: Callable[[Any], Any] | None = None,
    shape: str = "",
    reads_none: bool = False,
) -> Note:
    """Return the annotation of a key: its help text and, for a number, its bounds.

    A key of another type than bool, int, float, str and Literal has `read` and `shape`. `read` converts a
    written value, or raises ValueError with the cause. `shape` tells a reader how the value is written. With
    `reads_none`, `read` also converts the word `none`; otherwise that word stands for the default None.
    """
    return Note(help, least, most, read=read, shape=shape, reads_none=reads_none)


def node_count(help: str, *, least: int = 1) -> Note:
    return Note(help, least, MOST_NODES)


def duration(help: str, *, least: Duration = 0) -> Note:
    """Return the annotation of a key that is a duration. It must be written with its unit, as `20s`."""
    return Note(help, least, is_duration=True, read=_duration)


def instant(help: str) -> Note:
    """Return the annotation of a field that is a time since the beginning; a bare number is seconds."""
    return Note(help, is_duration=True, read=parse_duration)


def distribution(help: str) -> Note:
    return Note(help, read=_distribution, shape="distribution or duration")


def input_file(help: str) -> Note:
    return Note(help, read=_path, shape="file")


def items(item: type[Struct], help: str) -> Note:
    """Return the annotation of a key that is a list of tables; a struct declares their fields."""
    fields = ", ".join(settings_in(item))
    shape = f"list of {{ {fields} }}"
    return Note(help, read=lambda value: _read_items(item, value, shape), shape=shape, item=item)


def read_table(struct: type[TableT], table: Table) -> TableT:
    """Read a table into the struct that declares its keys. Raise `BadInput` with file, line and cause."""
    settings = settings_in(struct)
    table.check(settings)
    for name, setting in settings.items():
        if setting.required and name not in table.data:
            raise table.lacks(repr(name))
    return struct(**{name: read_key(struct, table, name) for name in settings if name in table.data})


def read_key(struct: type[Struct], table: Table, name: str) -> Any:
    """Return one key's value, checked and converted, or its default where the table does not have the key."""
    setting = settings_in(struct)[name]
    if name not in table.data:
        return setting.default
    try:
        value = setting.read(table.data[name])
    except ValueError as error:
        raise table.wrong(name, str(error)) from None
    return table.existing_file(name, value) if isinstance(value, Path) else value


def pair(value: Any) -> tuple[float, float]:
    """Read two numbers, written `[400, 300]` or `400x300`. Raise ValueError for anything else."""
    parts = value.replace("x", " ").split() if isinstance(value, str) else value
    try:
        first, second = map(number, parts)
    except (TypeError, ValueError):
        raise ValueError(f"expected two numbers, got {value!r}") from None
    return first, second


def names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of names, got {value!r}")
    return tuple(str(name) for name in value)


def count_or_names(value: Any) -> int | tuple[str, ...]:
    """Read a number of nodes, or a list of their names."""
    if isinstance(value, list):
        return names(value)
    count = whole(value)
    if count < 0:
        raise ValueError(f"{count} is less than 0")
    return count


def _duration(value: Any) -> Duration:
    if not isinstance(value, str):
        raise ValueError(f"expected a duration such as '20s', got {value!r}")
    return parse_duration(value)


def _distribution(value: Any) -> Distribution:
    if isinstance(value, str) and _A_DURATION.fullmatch(value):
        return Distribution(parse_duration(value) / SECOND)
    return Distribution(value)


def _path(value: Any) -> Path:
    if not isinstance(value, str):
        raise ValueError(f"expected a file's name, got {value!r}")
    return local_file(value) if is_url(value) else Path(value)


def _read_items(struct: type[Struct], value: Any, shape: str) -> tuple[Struct, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a {shape}, got {value!r}")
    return tuple(_read_item(struct, item, shape) for item in value)


def _read_item(struct: type[Struct], item: Any, shape: str) -> Struct:
    fields = settings_in(struct)
    if not isinstance(item, Mapping):
        raise ValueError(f"expected a {shape}, and {item!r} is no such element")
    for field in item:
        if field not in fields:
            raise ValueError(f"{item!r}: unknown key {field!r} {nearest(field, fields)}")
    for field, setting in fields.items():
        if setting.required and field not in item:
            raise ValueError(f"{item!r} has no {field!r}")
    return struct(**{field: _read_field(item, field, fields[field]) for field in item})


def _read_field(item: Mapping[str, Any], field: str, setting: Setting) -> Any:
    try:
        return setting.read(item[field])
    except ValueError as error:
        raise ValueError(f"{dict(item)!r}: {field}: {error}") from None
