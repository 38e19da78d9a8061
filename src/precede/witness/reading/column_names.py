"""Which column of somebody's log means what: names are mapped by an option, never rewritten by the user.

`node=consumer,step=offset` maps names. Two columns need not exist: `kind=:delivered` says that every row is a
delivery, `step=:row` that a node's rows stand in the file in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from precede.core.errors import BadInput

KNOWN: Final[tuple[str, ...]] = (
    "node",
    "incarnation",
    "step",
    "kind",
    "message",
    "message_source",
    "message_incarnation",
    "message_number",
    "destinations",
    "deadline_us",
    "clock_us",
)
"""The columns the witness reads, by the names it gives them."""

WHOLE_NUMBERS: Final = (
    "incarnation",
    "step",
    "message_incarnation",
    "message_number",
    "deadline_us",
    "clock_us",
)

OTHER, BROADCAST, DELIVERED = 0, 1, 2
BROADCAST_WORD: Final = "broadcast"
DELIVERED_WORD: Final = "delivered"
ROW_ORDER: Final = ":row"


class Layout(Struct, frozen=True):
    """Where to find what in one log. `columns` maps our name to theirs; a name that is absent is not there."""

    columns: Mapping[str, str]
    by: tuple[str, ...]
    kinds: Mapping[str, int]
    constant_kind: int | None = None

    @property
    def numbered(self) -> bool:
        """Messages are named by source and number (else by one opaque id)."""
        return "message_number" in self.columns

    @property
    def row_order(self) -> bool:
        return "step" not in self.columns

    def without(self, *names: str) -> Layout:
        """The same, with columns that the order does not need left unread."""
        columns = {ours: theirs for ours, theirs in self.columns.items() if ours not in names}
        return Layout(columns, self.by, self.kinds, self.constant_kind)

    def wanted(self) -> tuple[str, ...]:
        """Every column of theirs that is read, each once."""
        return tuple(dict.fromkeys((*self.columns.values(), *self.by)))


def read_mapping(written: str | Mapping[str, str] | None, option: str, known: Sequence[str]) -> dict[str, str]:
    """`node=consumer,step=offset` as a dict; an unknown name is answered with the nearest known one."""
    if written is None:
        return {}
    pairs = written.items() if isinstance(written, Mapping) else _pairs(written, option)
    mapping = {}
    for ours, theirs in pairs:
        if ours not in known:
            raise BadInput(f"{option}: there is no {ours!r}{_nearest(ours, known)}")
        if ours in mapping:
            raise BadInput(f"{option}: {ours!r} is given twice")
        mapping[ours] = theirs
    return mapping


def read_by(written: str | Sequence[str] | None) -> tuple[str, ...]:
    """`topic,partition` as names."""
    parts = written.split(",") if isinstance(written, str) else list(written or ())
    names = tuple(part.strip() for part in parts)
    if not all(names):
        raise BadInput(f"--by: an empty column name in {written!r}")
    return names


def read_kinds(written: str | Mapping[str, str] | None) -> dict[str, int]:
    """Which words in the `kind` column say broadcast and delivered: `broadcast=send,delivered=receive`."""
    words = read_mapping(written, "--kinds", (BROADCAST_WORD, DELIVERED_WORD))
    broadcast = words.get(BROADCAST_WORD, BROADCAST_WORD)
    delivered = words.get(DELIVERED_WORD, DELIVERED_WORD)
    if broadcast == delivered:
        raise BadInput(f"--kinds: {broadcast!r} cannot be both a broadcast and a delivery")
    return {broadcast: BROADCAST, delivered: DELIVERED}


def settle(
    available: Sequence[str],
    place: str,
    columns: Mapping[str, str],
    by: Sequence[str],
    kinds: Mapping[str, int],
) -> Layout:
    """Match the columns that are there with the ones that are needed."""
    found: dict[str, str] = {}
    constant = None
    for ours in KNOWN:
        theirs = columns.get(ours, ours)
        if ours == "kind" and theirs.startswith(":"):
            constant = _constant_kind(theirs)
        elif ours == "step" and theirs == ROW_ORDER:
            continue
        elif theirs in available:
            found[ours] = theirs
        elif ours in columns:
            raise BadInput(f"{place}: no column {theirs!r} to be {ours!r}{_nearest(theirs, available)}")
    needed = ["node"]
    needed += [] if columns.get("step") == ROW_ORDER else ["step"]
    needed += [] if constant is not None else ["kind"]
    for ours in needed:
        if ours not in found:
            hint = f"--columns {ours}=… says which one it is"
            raise BadInput(f"{place}: no column {ours!r} (there are: {', '.join(available)}; {hint})")
    _settle_ids(found, columns, available, place)
    return Layout(found, _settle_by(available, place, by), kinds, constant)


def _settle_ids(
    found: dict[str, str], columns: Mapping[str, str], available: Sequence[str], place: str
) -> None:
    """Source and number when both are there, else one opaque id; an explicit `message=` wins."""
    numbered = "message_source" in found and "message_number" in found
    if "message" in found and ("message" in columns or not numbered):
        for name in ("message_source", "message_incarnation", "message_number"):
            found.pop(name, None)
        return
    if not numbered:
        raise BadInput(
            f"{place}: no column says which message a row is about: message_source and message_number, "
            f"or one id in message (there are: {', '.join(available)}; --columns message=… says which it is)"
        )
    found.pop("message", None)


def _settle_by(available: Sequence[str], place: str, by: Sequence[str]) -> tuple[str, ...]:
    """Runs are independent of each other, so a log that names them is split by run when nobody says."""
    if not by:
        return ("run_id",) if "run_id" in available else ()
    settled = []
    for name in by:
        if name in available:
            settled.append(name)
        elif name == "run" and "run_id" in available:
            settled.append("run_id")
        else:
            raise BadInput(f"{place}: no column {name!r} to split by{_nearest(name, available)}")
    return tuple(settled)


def _constant_kind(written: str) -> int:
    words = {f":{BROADCAST_WORD}": BROADCAST, f":{DELIVERED_WORD}": DELIVERED}
    if written not in words:
        raise BadInput(f"--columns: kind={written} is none of {', '.join('kind=' + word for word in words)}")
    return words[written]


def _pairs(written: str, option: str) -> list[tuple[str, str]]:
    pairs = []
    for part in written.split(","):
        ours, equals, theirs = part.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise BadInput(f"{option}: {part!r} is not written name=column")
        pairs.append((ours.strip(), theirs.strip()))
    return pairs


def _nearest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else f" (there are: {', '.join(known)})"
