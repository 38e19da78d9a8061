"""Reads a command line that is written plainly, without typer: typer and pydantic take 0.13 CPU s to import.

Plain are words of the declared types, options by their full names and positional arguments in the right number.
All else is declined: help, mistakes, numbers in unusual spellings, `--`. typer then reads the same words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from precede.cli.parameters import Argument, Group, Option

PlainCall: TypeAlias = "tuple[Callable[..., Any], dict[str, Any]]"
"""A function and its arguments, by name."""
_WHOLE: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


class NotPlain(Exception):
    """This command line is for typer."""


class _Parameter(NamedTuple):
    """A parameter of a verb: the type of its value or of each value of a list, and what was declared."""

    name: str
    kind: Any
    is_list: bool
    declared: Argument
    default: Any


def read_plain_words(verb: Callable[..., Any] | Group, words: Sequence[str]) -> PlainCall | None:
    """Return which function to call with which arguments; None if typer must read the words."""
    try:
        if not isinstance(verb, Group):
            return verb, _arguments(verb, words)
        if not words or words[0] not in verb.commands:
            return None
        return verb.commands[words[0]], _arguments(verb.commands[words[0]], words[1:])
    except NotPlain:
        return None


def _arguments(function: Callable[..., Any], words: Sequence[str]) -> dict[str, Any]:
    parameters = _parameters(function)
    options = {
        name: (parameter, is_on)
        for parameter in parameters
        if isinstance(parameter.declared, Option)
        for name, is_on in _names(parameter.name, parameter.kind, parameter.declared).items()
    }
    given: dict[str, list[Any]] = {}
    positional = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-") or word == "-":
            positional.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in options:
            raise NotPlain
        parameter, is_on = options[name]
        if parameter.kind is bool:
            if equals:
                raise NotPlain
            given.setdefault(parameter.name, []).append(is_on)
        else:
            value = value if equals else next(remaining, "-")
            if value.startswith("-"):
                raise NotPlain
            given.setdefault(parameter.name, []).append(_value(parameter, value))
    for parameter in parameters:
        if not isinstance(parameter.declared, Option):
            taken = len(positional) if parameter.is_list else 1
            if positional:
                given[parameter.name] = [_value(parameter, word) for word in positional[:taken]]
            positional = positional[taken:]
    if positional:
        raise NotPlain
    return {parameter.name: _given(parameter, given.get(parameter.name, [])) for parameter in parameters}


def _parameters(function: Callable[..., Any]) -> list[_Parameter]:
    parameters = []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if get_origin(hints.get(name)) is not Annotated:
            raise NotPlain
        kind, declared = get_args(hints[name])
        if get_origin(kind) is UnionType:
            kind = next(part for part in get_args(kind) if part is not NoneType)
        is_list = get_origin(kind) is list
        parameters.append(
            _Parameter(name, get_args(kind)[0] if is_list else kind, is_list, declared, parameter.default)
        )
    return parameters


def _names(name: str, kind: Any, option: Option) -> dict[str, bool]:
    """Return the names of an option; the value is what the name means for an option that is true or false."""
    if option.names:
        return {
            alternative: is_on
            for declared in option.names
            for alternative, is_on in zip(declared.split("/"), (True, False), strict=False)
        }
    written = name.replace("_", "-")
    return {f"--{written}": True} | ({f"--no-{written}": False} if kind is bool else {})


def _value(parameter: _Parameter, word: str) -> Any:
    """Return the value that a word means."""
    kind, declared = parameter.kind, parameter.declared
    if not word or not word.isprintable():
        raise NotPlain
    if kind is str:
        return word
    if kind is Path:
        return Path(word)
    if get_origin(kind) is Literal and word in get_args(kind):
        return word
    if kind in (int, float) and (_WHOLE if kind is int else _DECIMAL).fullmatch(word):
        number = kind(word)
        if (declared.min is None or declared.min <= number) and (
            declared.max is None or number <= declared.max
        ):
            return number
    raise NotPlain


def _given(parameter: _Parameter, values: list[Any]) -> Any:
    """Return the value of a parameter, or its default."""
    if not values:
        if parameter.default is inspect.Parameter.empty:
            raise NotPlain
        return parameter.default
    if parameter.is_list:
        return values
    if len(values) > 1:
        raise NotPlain
    return values[0]
