"""Typed options: a protocol declares them once, as a struct; keys, defaults, bounds and help come from it.

    class MyOptions(Durable, frozen=True, kw_only=True):
        rto: Annotated[Duration, duration("retransmit after this time")] = 200 * MILLISECOND
        tree: Annotated[Literal["many", "one"], option("one tree per source, or one for all")] = "many"

A field's type says how the option is written: `bool`, `int`, `float`, `str`, a `Literal` of words, or a
duration (whole microseconds, written `20s`). The default of `X | None` is None, which is written `none`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import LONGEST, format_duration, parse_duration

Kind: TypeAlias = Literal["duration", "int", "float", "bool", "text", "choice"]
OptionsT = TypeVar("OptionsT", bound=Struct)
Number = TypeVar("Number", int, float)

_MOST: Final = 1 << 62
_KINDS: Final[dict[Any, Kind]] = {bool: "bool", int: "int", float: "float", str: "text"}
_TRUTH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Note(Struct, frozen=True):
    """What an annotation adds to an option's type: help text, bounds, and whether the number is a duration."""

    help: str
    least: int = 0
    most: int | None = None
    is_duration: bool = False


def option(help: str, *, least: int = 0, most: int | None = None) -> Note:
    """Describe an option: `Annotated[int, option("largest packet in bytes", least=1)]`."""
    return Note(help, least, most)


def duration(help: str, *, least: int = 0) -> Note:
    """Describe an option that is a duration. One that repeats needs a `least`: 0s would stop simulated time."""
    return Note(help, least, is_duration=True)


class Durable(Struct, frozen=True, kw_only=True):
    """The option of every protocol that can survive a restart."""

    durable: Annotated[bool, option("persist the state that a restart needs")] = False


class Option(Struct, frozen=True):
    """One option as its struct declares it."""

    kind: Kind
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = _MOST

    def written_default(self) -> str:
        """The default as a user would write it."""
        if self.default is None:
            return "none"
        if self.kind == "duration":
            return format_duration(self.default)
        return str(self.default).lower() if self.kind == "bool" else str(self.default)

    def bounds(self) -> str:
        """The allowed values in words; empty where the kind says it all."""
        if self.choices:
            return " | ".join(self.choices)
        if self.kind not in ("duration", "int", "float"):
            return ""
        least, most = self._written(self.least), self._written(self.most)
        if self.most < (LONGEST if self.kind == "duration" else _MOST):
            return f"{least} to {most}"
        return f"at least {least}" if self.least else ""

    def read(self, key: str, value: Any) -> Any:
        """A written value in its own type. Raise `BadInput` naming the key if it is not one."""
        if value is None or (value == "none" and self.default is None):
            return self.default
        try:
            if self.kind == "duration":
                return self._within_bounds(value if type(value) is int else parse_duration(value))
            if self.kind == "int":
                return self._within_bounds(_whole(value))
            if self.kind == "float":
                return self._within_bounds(float(value))
            if self.kind == "bool":
                return _truth(value)
            if not isinstance(value, (str, int, float)):
                raise ValueError(f"expected text, got {value!r}")
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"option {key!r}: {error}") from error
        if self.choices and value not in self.choices:
            raise BadInput(f"option {key!r}: {value!r} is none of {', '.join(self.choices)}")
        return str(value)

    def _within_bounds(self, value: Number) -> Number:
        if not self.least <= value <= self.most:
            least, most = self._written(self.least), self._written(self.most)
            raise ValueError(f"{value} is not between {least} and {most}")
        return value

    def _written(self, bound: int) -> str:
        return format_duration(bound) if self.kind == "duration" else str(bound)


def declared_options(struct: type[Struct]) -> Mapping[str, Option]:
    """The options that a struct declares, by key, in the order of declaration."""
    return _declarations(struct)


@cache
def _declarations(struct: Any) -> dict[str, Option]:
    return {field.name: _declared(struct, field) for field in msgspec.structs.fields(struct)}


def _declared(struct: type[Struct], field: msgspec.structs.FieldInfo) -> Option:
    place = f"{struct.__name__}.{field.name}"
    if get_origin(field.type) is not Annotated:
        raise TypeError(f"{place}: write Annotated[type, option('help')]")
    declared, *notes = get_args(field.type)
    note = next((note for note in notes if isinstance(note, Note)), None)
    if note is None or field.default is msgspec.NODEFAULT:
        raise TypeError(f"{place}: an option needs a help text and a default")
    if NoneType in get_args(declared):
        declared = next(part for part in get_args(declared) if part is not NoneType)
    if get_origin(declared) is Literal:
        return Option("choice", field.default, note.help, get_args(declared))
    if declared not in _KINDS:
        raise TypeError(f"{place}: {declared} is no type of an option")
    kind: Kind = "duration" if note.is_duration else _KINDS[declared]
    most = note.most if note.most is not None else LONGEST if kind == "duration" else _MOST
    return Option(kind, field.default, note.help, (), note.least, most)


def read_struct(struct: type[OptionsT], written: Mapping[str, Any]) -> OptionsT:
    """The struct with its options as written, checked and converted; keys of other structs are ignored."""
    declared = declared_options(struct)
    return struct(**{key: declared[key].read(key, written[key]) for key in declared if key in written})


def _whole(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ValueError(f"not a whole number: {value!r}")
    return int(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _TRUTH:
        raise ValueError(f"neither true nor false: {value!r}")
    return _TRUTH[str(value).lower()]
