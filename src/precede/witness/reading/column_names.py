"""Maps the columns of a foreign log to the columns that the verifier reads.

`--columns node=consumer,step=offset` maps names. Two columns need not exist: `kind=:delivered` means that every
row is a delivery, `step=:row` that the rows of a node are in the file in the order in which it wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

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
"""The columns that the verifier reads, by its own names."""

WHOLE_NUMBERS: Final = (
    "incarnation",
    "step",
    "message_incarnation",
    "message_number",
    "deadline_us",
    "clock_us",
)

OTHER, BROADCAST, DELIVERED, OBSERVED, STARTED = 0, 1, 2, 3, 4
"""The kinds of rows. Only display order tells the last two from OTHER."""

BROADCAST_WORD: Final = "broadcast"
DELIVERED_WORD: Final = "delivered"
OBSERVED_WORD: Final = "observed"
STARTED_WORD: Final = "started"
ABOVE_WORD: Final = "above"
ROW_ORDER: Final = ":row"


class Layout(Struct, frozen=True):
    """The columns of one log.

    `columns` maps our names to the log's; a column that the log does not have is absent. `by` has the columns
    that split the log into independent orders. `kinds` maps the words of the column `kind` to BROADCAST and
    DELIVERED; `constant_kind` replaces that column.
    """

    columns: Mapping[str, str]
    by: tuple[str, ...]
    kinds: Mapping[str, int]
    constant_kind: int | None = None

    @property
    def numbered(self) -> bool:
        return "message_number" in self.columns

    @property
    def row_order(self) -> bool:
        return "step" not in self.columns

    def without(self, *names: str) -> Layout:
        """Return the layout without columns that the order does not need."""
        columns = {ours: theirs for ours, theirs in self.columns.items() if ours not in names}
        return Layout(columns, self.by, self.kinds, self.constant_kind)

    def with_places(self, available: Sequence[str]) -> Layout:
        """Return the layout for display order, which also reads where on the screen a message was shown."""
        if "reason" not in available or self.constant_kind is not None:
            return self
        kinds = {OBSERVED_WORD: OBSERVED, STARTED_WORD: STARTED, **self.kinds}
        return Layout({**self.columns, "reason": "reason"}, self.by, kinds)

    def placing(self, kind: int, columns: Mapping[str, Sequence[Any]], index: int) -> int:
        """Return the kind of a row: an observation that is no place on the screen is OTHER."""
        return OTHER if kind == OBSERVED and columns["reason"][index] != ABOVE_WORD else kind

    def names_to_read(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.columns.values(), *self.by)))


def read_mapping(written: str | Mapping[str, str] | None, option: str, names: Sequence[str]) -> dict[str, str]:
    """Parse an option such as `node=consumer,step=offset` as a dict; `names` are the names it may map."""
    if written is None:
        return {}
    pairs = written.items() if isinstance(written, Mapping) else _pairs(written, option)
    mapping = {}
    for ours, theirs in pairs:
        if ours not in names:
            raise BadInput(f"{option}: unknown name {ours!r}{_nearest(ours, names)}")
        if ours in mapping:
            raise BadInput(f"{option}: {ours!r} occurs twice")
        mapping[ours] = theirs
    return mapping


def read_by(written: str | Sequence[str] | None) -> tuple[str, ...]:
    """Parse the option `--by topic,partition` as names."""
    parts = written.split(",") if isinstance(written, str) else list(written or ())
    names = tuple(part.strip() for part in parts)
    if not all(names):
        raise BadInput(f"--by: an empty column name in {written!r}")
    return names


def read_kinds(written: str | Mapping[str, str] | None) -> dict[str, int]:
    """Parse the option `--kinds broadcast=send,delivered=receive` as a mapping from words to kinds."""
    words = read_mapping(written, "--kinds", (BROADCAST_WORD, DELIVERED_WORD))
    broadcast = words.get(BROADCAST_WORD, BROADCAST_WORD)
    delivered = words.get(DELIVERED_WORD, DELIVERED_WORD)
    if broadcast == delivered:
        raise BadInput(f"--kinds: {broadcast!r} cannot be both a broadcast and a delivery")
    return {broadcast: BROADCAST, delivered: DELIVERED}


def match_columns(
    available: Sequence[str],
    place: str,
    columns: Mapping[str, str],
    by: Sequence[str],
    kinds: Mapping[str, int],
) -> Layout:
    """Match our columns with those of a log. Raises BadInput, with its `place`, if a needed one is missing."""
    matched: dict[str, str] = {}
    constant = None
    for ours in KNOWN:
        theirs = columns.get(ours, ours)
        if ours == "kind" and theirs.startswith(":"):
            constant = _constant_kind(theirs)
        elif ours == "step" and theirs == ROW_ORDER:
            continue
        elif theirs in available:
            matched[ours] = theirs
        elif ours in columns:
            raise BadInput(f"{place}: no column {theirs!r} for {ours!r}{_nearest(theirs, available)}")
    needed = ["node"]
    needed += [] if columns.get("step") == ROW_ORDER else ["step"]
    needed += [] if constant is not None else ["kind"]
    for ours in needed:
        if ours not in matched:
            from difflib import get_close_matches

            near = get_close_matches(ours, available, n=1)
            hint = f"did you mean --columns {ours}={near[0]}?" if near else f"name it with --columns {ours}=…"
            raise BadInput(f"{place}: no column {ours!r} (there are: {', '.join(available)}; {hint})")
    _choose_message_columns(matched, columns, available, place)
    return Layout(matched, _match_by(available, place, by), kinds, constant)


def _choose_message_columns(
    matched: dict[str, str], columns: Mapping[str, str], available: Sequence[str], place: str
) -> None:
    """Decide whether source and number name a message, or one opaque id; remove the other columns."""
    numbered = "message_source" in matched and "message_number" in matched
    if "message" in matched and ("message" in columns or not numbered):
        for name in ("message_source", "message_incarnation", "message_number"):
            matched.pop(name, None)
        return
    if not numbered:
        raise BadInput(
            f"{place}: no column names the message of a row: message_source and message_number, "
            f"or one id in message (there are: {', '.join(available)}; name it with --columns message=…)"
        )
    matched.pop("message", None)


def _match_by(available: Sequence[str], place: str, by: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to split by: `run` means `run_id`, which is the default if the log has it."""
    if not by:
        return ("run_id",) if "run_id" in available else ()
    columns = []
    for name in by:
        if name in available:
            columns.append(name)
        elif name == "run" and "run_id" in available:
            columns.append("run_id")
        else:
            raise BadInput(f"{place}: no column {name!r} to split by{_nearest(name, available)}")
    return tuple(columns)


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
            raise BadInput(f"{option}: expected name=column, got {part!r}")
        pairs.append((ours.strip(), theirs.strip()))
    return pairs


def _nearest(word: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else f" (there are: {', '.join(names)})"
