"""Typed options: a protocol declares them once, as a struct; keys, defaults, bounds and help come from it.

    class MyOptions(Durable, frozen=True, kw_only=True):
        rto: Annotated[Duration, duration("retransmit after this time")] = 200 * MILLISECOND
        tree: Annotated[Literal["many", "one"], option("one tree per source, or one for all")] = "many"

A field's type says how the option is written: `bool`, `int`, `float`, `str`, a `Literal` of words, or a
duration (whole microseconds, written `20s`). The default of `X | None` is None, which is written `none`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import format_duration
from precede.core.settings import Note, Setting, settings_in

OptionsT = TypeVar("OptionsT", bound=Struct)


def option(help: str, *, least: int = 0, most: int | None = None) -> Note:
    return Note(help, least, most)


def duration(help: str, *, least: int = 0) -> Note:
    """Return the annotation of an option that is a duration. An interval needs a `least` above 0."""
    return Note(help, least, is_duration=True)


class Durable(Struct, frozen=True, kw_only=True):
    """The option `durable`, which the options of each protocol that can survive a restart inherit."""

    durable: Annotated[bool, option("persist the state that a restart needs")] = False


def declared_options(struct: type[Struct]) -> Mapping[str, Setting]:
    """Return the options that a struct declares, by key. Raise TypeError if one lacks a default."""
    declared = settings_in(struct)
    for key, setting in declared.items():
        if setting.default is msgspec.NODEFAULT:
            raise TypeError(f"{struct.__name__}.{key}: an option needs a default")
    return declared


def read_struct(struct: type[OptionsT], written: Mapping[str, Any]) -> OptionsT:
    """Return the struct with its written options, checked and converted. Other keys are ignored."""
    return struct(
        **{
            key: read_option(key, setting, written[key])
            for key, setting in declared_options(struct).items()
            if key in written
        }
    )


def read_option(key: str, setting: Setting, value: Any) -> Any:
    """Convert one option to its own type. Raise `BadInput` naming the key if the value cannot be used."""
    try:
        return setting.read(value)
    except ValueError as error:
        raise BadInput(f"option {key!r}: {error}") from error


def written_options(options: Mapping[str, object] | Struct | None) -> dict[str, Any]:
    """Return options as a user writes them, from a mapping or a protocol's struct (without its defaults)."""
    if isinstance(options, Struct):
        written = {}
        for key, declared in declared_options(type(options)).items():
            value = getattr(options, key)
            if value != declared.default:
                written[key] = format_duration(value) if declared.kind == "duration" else value
        return written
    if options is not None and not isinstance(options, Mapping):
        raise BadInput(f"options: expected a mapping such as {{'cache': 1000}}, got {options!r}")
    return dict(options or {})
