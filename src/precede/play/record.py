"""The record of a played world: what the player did, and when. With scenario and seed it is the whole run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Instant

Action: TypeAlias = Literal["say", "crash", "restart", "cut", "mend"]

RECORD_FILE: Final = "inputs.json"
LONGEST_TEXT: Final = 200
"""The most characters of a message that a player says."""
MOST_INPUTS: Final = 100_000
_LARGEST_RECORD: Final = 1 << 26
_LATEST: Final = 1 << 60


class Input(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that the player did, at an instant, after everything else of that instant.

    `peer` is the other end of a link to cut or mend. `text` is what the node says, `to` its destinations (none:
    all nodes), `answers` the message that it answers.
    """

    at_us: Instant
    action: Action
    node: str
    peer: str | None = None
    text: str = ""
    to: tuple[str, ...] | None = None
    answers: str | None = None


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All inputs of a played world in order, and the instant at which it was saved."""

    version: Literal[1] = 1
    end_us: Instant
    inputs: tuple[Input, ...] = ()


def check_input(item: Input, names: Mapping[str, int]) -> None:
    """Raise `BadInput` if an input names a node that is not there, or lacks something that it needs."""
    named = [item.node, *([] if item.peer is None else [item.peer]), *(item.to or ())]
    for name in named:
        if name not in names:
            raise BadInput(f"no node {name!r} in this world")
    if item.action in ("cut", "mend"):
        if item.peer is None or item.peer == item.node:
            raise BadInput(f"{item.action}: name two different nodes")
    elif item.peer is not None:
        raise BadInput(f"{item.action}: takes one node, got {item.node!r} and {item.peer!r}")
    if item.action != "say" and (item.text or item.to is not None or item.answers is not None):
        raise BadInput(f"{item.action}: takes no text, destinations or answer")
    if len(item.text) > LONGEST_TEXT or len(item.answers or "") > LONGEST_TEXT:
        raise BadInput(f"say: at most {LONGEST_TEXT} characters")
    if item.to is not None and not item.to:
        raise BadInput("say: name at least one destination, or none for all nodes")


def check_record(record: Record, names: Sequence[str]) -> None:
    """Raise `BadInput` if an input is wrong, or if the inputs are not in order or end after the record."""
    known = {name: node for node, name in enumerate(names)}
    before = 0
    for number, item in enumerate(record.inputs, 1):
        try:
            check_input(item, known)
        except BadInput as error:
            raise BadInput(f"input {number}: {error}") from None
        if not before <= item.at_us <= record.end_us:
            raise BadInput(f"input {number}: at_us {item.at_us} is not between {before} and {record.end_us}")
        before = item.at_us
    if record.end_us > _LATEST:
        raise BadInput(f"end_us: {record.end_us} is later than any world lasts")


def read_record(path: Path) -> Record:
    """Read a record. Raise `BadInput` if the file is not one."""
    try:
        if path.stat().st_size > _LARGEST_RECORD:
            raise BadInput(f"{path}: larger than {_LARGEST_RECORD >> 20} MB")
        record = msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.DecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"{path}: not a record of play ({cause})") from error
    if len(record.inputs) > MOST_INPUTS:
        raise BadInput(f"{path}: more than {MOST_INPUTS:,} inputs")
    return record


def write_record(path: Path, record: Record) -> None:
    """Write a record with one input per line."""
    inputs = ",\n".join("    " + msgspec.json.encode(item).decode() for item in record.inputs)
    listed = f"[\n{inputs}\n  ]" if inputs else "[]"
    text = f'{{\n  "version": {record.version},\n  "end_us": {record.end_us},\n  "inputs": {listed}\n}}\n'
    path.write_text(text, encoding="utf-8")


def input_of(values: Mapping[str, Any], at: Instant) -> Input:
    """Return the input that a page asks for, at an instant. Raise `BadInput` if it is none."""
    try:
        return msgspec.convert({**values, "at_us": at}, Input)
    except msgspec.ValidationError as error:
        raise BadInput(f"not an input: {error}") from error
