"""Settings declared once, as annotated fields of a struct: type, default, bounds and help text.

Protocol options (`precede.protocols.options`) and the tables of a scenario file (`precede.experiments.keys`)
are such structs. This module reads the declarations and converts the values that people write.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from precede.core.instants import LONGEST, format_duration, parse_duration

Kind: TypeAlias = Literal["duration", "int", "float", "bool", "text", "choice", "other"]
Number = TypeVar("Number", int, float)

_MOST: Final = 1 << 62
_INFINITE: Final = float("inf")
_KINDS: Final[dict[Any, Kind]] = {bool: "bool", int: "int", float: "float", str: "text"}
_TRUTH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Note(Struct, frozen=True):
    """Facts about a setting beyond its type: help text, bounds, how it is written.

    `read` converts a written value of a type that this module does not know; `shape` says how it is written.
    `item` is the struct of each element, where the setting is a list of tables. `reads_none`: the word `none`
    is a value that `read` converts, not the absence of a value.
    """

    help: str
    least: float = 0
    most: float | None = None
    is_duration: bool = False
    read: Callable[[Any], Any] | None = None
    shape: str = ""
    item: type[Struct] | None = None
    reads_none: bool = False


class Setting(Struct, frozen=True):
    """One declared setting. `default` is `msgspec.NODEFAULT` where a value is required."""

    kind: Kind
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float = 0
    most: float = _MOST
    reader: Callable[[Any], Any] | None = None
    shape: str = ""
    item: type[Struct] | None = None
    reads_none: bool = False

    @property
    def required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    def written_default(self) -> str:
        """Return the default as a user would write it; `none` where there is none."""
        default = self.default
        if default is None or self.required or default in ((), {}):
            return "none"
        if self.kind == "duration":
            return format_duration(default)
        if isinstance(default, tuple):
            return f"[{', '.join(f'{part:g}' for part in default)}]"
        if self.kind == "float":
            return _short(default)
        return str(default).lower() if self.kind == "bool" else str(default)

    def bounds(self) -> str:
        """Return the allowed values in words; empty if the kind of the setting already determines them."""
        if self.choices:
            return " | ".join(self.choices)
        if self.kind not in ("duration", "int", "float"):
            return self.shape
        if self.most < (LONGEST if self.kind == "duration" else _MOST):
            return f"{self._written(self.least)} to {self._written(self.most)}"
        return f"at least {self._written(self.least)}" if self.least else ""

    def read(self, value: Any) -> Any:
        """Convert a written value. None means the default. Raise ValueError with the cause if it is wrong."""
        if value is None or (value == "none" and self.default is None and not self.reads_none):
            return None if self.required else self.default
        try:
            read = self._converted(value)
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error
        if isinstance(read, (int, float)) and self.kind in ("duration", "int", "float"):
            return self._within_bounds(read)
        return read

    def _converted(self, value: Any) -> Any:
        if self.reader is not None:
            return self.reader(value)
        if self.kind == "duration":
            return value if type(value) is int else parse_duration(value)
        if self.kind == "int":
            return whole(value)
        if self.kind == "float":
            return number(value)
        if self.kind == "bool":
            return _truth(value)
        if not isinstance(value, (str, int, float)):
            raise ValueError(f"expected text, got {value!r}")
        if self.choices and value not in self.choices:
            near = did_you_mean(str(value), self.choices)
            raise ValueError(f"{value!r} is none of {', '.join(self.choices)}{near}")
        return str(value)

    def _within_bounds(self, value: Number) -> Number:
        if not self.least <= value <= self.most:
            raise ValueError(
                f"{value} is not between {self._written(self.least)} and {self._written(self.most)}"
            )
        return value

    def _written(self, bound: float) -> str:
        if self.kind == "duration":
            return format_duration(int(bound))
        return str(bound) if isinstance(bound, int) else _short(bound)


def settings_in(struct: type[Struct]) -> Mapping[str, Setting]:
    """Return the settings that a struct declares, by name, in the order of declaration."""
    return _declarations(struct)


@cache
def _declarations(struct: Any) -> dict[str, Setting]:
    return {field.name: _declared(struct, field) for field in msgspec.structs.fields(struct)}


def _declared(struct: type[Struct], field: msgspec.structs.FieldInfo) -> Setting:
    place = f"{struct.__name__}.{field.name}"
    declared, *notes = get_args(field.type) if get_origin(field.type) is Annotated else (field.type,)
    note = next((note for note in notes if isinstance(note, Note)), None)
    if note is None:
        raise TypeError(f"{place}: write Annotated[type, option('help text')]")
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    if get_origin(declared) in (Union, UnionType):
        parts = [part for part in get_args(declared) if part is not NoneType]
        declared = parts[0] if len(parts) == 1 else declared
    if get_origin(declared) is Literal:
        return Setting("choice", default, note.help, get_args(declared))
    kind: Kind = "duration" if note.is_duration else _KINDS.get(declared, "other")
    if kind == "other" and note.read is None:
        raise TypeError(f"{place}: {declared} needs a function that reads it")
    limit = {"duration": LONGEST, "float": _INFINITE}.get(kind, _MOST)
    most = limit if note.most is None else note.most
    return Setting(
        kind, default, note.help, (), note.least, most, note.read, note.shape, note.item, note.reads_none
    )


def _short(number: float) -> str:
    """Return a number as people write it: 1e8, not 1e+08."""
    return re.sub(r"e([+-])0*", lambda sign: "e-" if sign[1] == "-" else "e", f"{number:g}")


def whole(value: Any) -> int:
    """Convert a whole number, or the text of one. Raise ValueError for anything else, True and 1.0 included."""
    try:
        if not isinstance(value, (bool, float)) and len(str(value)) <= 40:
            return int(value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"expected a whole number, got {value!r}")


def number(value: Any) -> float:
    """Convert a number, or the text of one (`inf` too). Raise ValueError for anything else, True included."""
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"expected a number, got {value!r}")


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _TRUTH:
        raise ValueError(f"expected true or false, got {value!r}")
    return _TRUTH[str(value).lower()]


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for an unknown word, or nothing if no known word is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(word), list(candidates), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return a hint for an unknown word: `(did you mean 'x'?)`, or the list of known words if none is near."""
    words = list(candidates)
    return did_you_mean(word, words).strip() or f"(known: {', '.join(words)})"
