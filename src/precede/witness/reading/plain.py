"""From rows to histories in plain Python: small logs, and machines without numpy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.witness.history import (
    ABSENT,
    ANYONE,
    GHOST,
    GHOSTS_KEPT,
    NEVER,
    Gap,
    Ghost,
    History,
    name_message,
)
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER, Layout
from precede.witness.reading.logs import Log

_LARGEST: Final = (1 << 63) - 1
_SEPARATORS: Final = re.compile(r"[;,|\s]+")
_WORDS_SHOWN: Final = 8

Place: TypeAlias = Callable[[int], str]
"""Where a row stands, in words: `log.csv, row 17 (line 18)`."""

Key: TypeAlias = tuple[str, int, int] | str
Process: TypeAlias = tuple[str, int]


class Broadcast:
    """What the broadcast row of a message said."""

    __slots__ = ("deadline", "destinations", "process", "row")

    def __init__(self, row: int, process: Process, deadline: int, destinations: frozenset[str] | None) -> None:
        self.row = row
        self.process = process
        self.deadline = deadline
        self.destinations = destinations


class Group:
    """The rows of one independent order, as they come."""

    def __init__(self) -> None:
        self.rows: dict[Process, list[tuple[int, int, int, Key | None, int | None]]] = {}
        self.broadcasts: dict[Key, Broadcast] = {}


class PlainBuilder:
    """Takes columns in batches, checks every value, and gives one history per group."""

    def __init__(self, layout: Layout, log: Log, counted: bool) -> None:
        self.layout = layout
        self.log = log
        self.place = log.place
        self.counted = counted and not layout.row_order
        self.groups: dict[tuple[str, ...], Group] = {}
        self.rows = 0
        self.other_kinds: dict[str, None] = {}
        self.broadcasts = 0
        self.has_destinations = "destinations" in layout.columns
        self.has_deadline = log.deadlines_elsewhere

    @property
    def deliveries_only(self) -> bool:
        """Does the log, all of it, know no broadcasts?"""
        return self.broadcasts == 0 and not self.log.broadcasts_elsewhere

    def read(self, progress: Callable[[int], None] | None) -> list[History]:
        """Read the whole log."""
        for columns, count in self.log.read(self.layout.wanted()):
            self._add(columns, count)
            if progress is not None:
                progress(self.rows)
        return self._finish()

    def _add(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        """Take `count` rows; `columns` is by the log's own names, values as they were read."""
        names = self.layout.columns
        nothing: Sequence[Any] = (None,) * count
        by = [columns[name] for name in self.layout.by]
        fields = [
            columns[names[ours]] if ours in names else nothing
            for ours in ("node", "incarnation", "step", "kind", "clock_us")
        ]
        for index, (node, life, step, kind, clock) in enumerate(zip(*fields, strict=True)):
            row = self.rows + 1
            self.rows = row
            key = tuple(text(values[index], row, "a column of --by", self.place) for values in by)
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = Group()
            process = (
                text(node, row, "node", self.place),
                0 if life is None else whole(life, row, "incarnation", self.place),
            )
            at = row if self.layout.row_order else whole(step, row, "step", self.place)
            what = self._kind(kind, row)
            message: Key | None = None
            moment: int | None = None
            if what != OTHER:
                message = self._message(columns, index, row, process, what)
                if what == BROADCAST:
                    self._broadcast(group, columns, index, row, process, message)
                elif clock is not None:
                    moment = whole(clock, row, "clock_us", self.place)
            rows = group.rows.get(process)
            if rows is None:
                rows = group.rows[process] = []
            rows.append((at, row, what, message, moment))

    def _finish(self) -> list[History]:
        """Every group's history, in the natural order of the groups."""
        ordered = sorted(self.groups, key=lambda key: tuple(natural(part) for part in key))
        return [self._history(key, self.groups.pop(key), self.deliveries_only) for key in ordered]

    def _kind(self, value: Any, row: int) -> int:
        constant = self.layout.constant_kind
        if constant is not None:
            return constant
        word = text(value, row, "kind", self.place)
        kind = self.layout.kinds.get(word, OTHER)
        if kind == OTHER and len(self.other_kinds) < _WORDS_SHOWN:
            self.other_kinds[word] = None
        return kind

    def _message(
        self, columns: Mapping[str, Sequence[Any]], index: int, row: int, process: Process, kind: int
    ) -> Key:
        names, place = self.layout.columns, self.place
        if not self.layout.numbered:
            return text(columns[names["message"]][index], row, "message", place)
        source = columns[names["message_source"]][index]
        lives = names.get("message_incarnation")
        life = None if lives is None else columns[lives][index]
        number = whole(columns[names["message_number"]][index], row, "message_number", place)
        if kind == BROADCAST:
            named = (
                process[0] if source is None else text(source, row, "message_source", place),
                process[1] if life is None else whole(life, row, "message_incarnation", place),
            )
            if named != process:
                raise BadInput(
                    f"{place(row)}: node {_name(process)} broadcasts a message whose source is {_name(named)}"
                )
            return (*process, number)
        return (
            text(source, row, "message_source", place),
            0 if life is None else whole(life, row, "message_incarnation", place),
            number,
        )

    def _broadcast(
        self,
        group: Group,
        columns: Mapping[str, Sequence[Any]],
        index: int,
        row: int,
        process: Process,
        message: Key,
    ) -> None:
        self.broadcasts += 1
        before = group.broadcasts.get(message)
        if before is not None:
            raise BadInput(
                f"{self.place(row)}: message {_label(message)} is broadcast again (first in row {before.row})"
            )
        names = self.layout.columns
        deadline = NEVER
        if "deadline_us" in names and columns[names["deadline_us"]][index] is not None:
            deadline = whole(columns[names["deadline_us"]][index], row, "deadline_us", self.place)
            self.has_deadline = True
        to: frozenset[str] | None = None
        if self.has_destinations:
            to = destinations(columns[names["destinations"]][index], row, self.place)
        group.broadcasts[message] = Broadcast(row, process, deadline, to)

    def _history(self, key: tuple[str, ...], group: Group, deliveries_only: bool) -> History:
        processes = sorted(group.rows, key=lambda process: (natural(process[0]), process[1]))
        gaps: list[Gap] = []
        for p, process in enumerate(processes):
            rows = group.rows[process]
            rows.sort(key=lambda row: row[0])
            self._check_steps(p, process, rows, _last_step(group, processes, p), gaps)
        messages = self._number_messages(group, processes, deliveries_only)
        nodes = {name: code for code, name in enumerate(dict.fromkeys(node for node, _ in processes))}
        history = History(
            group=tuple(zip(self.layout.by, key, strict=True)),
            nodes=list(nodes),
            node_of=[nodes[node] for node, _ in processes],
            incarnation=[life for _, life in processes],
            start=[0],
            events=[],
            steps=[],
            source=[],
            base=[],
            position=[],
            number=[],
            labels=None if self.layout.numbered else [],
            deliveries=0,
            gaps=gaps,
            clock=[],
        )
        places = {process: p for p, process in enumerate(processes)}
        self._fill_messages(history, group, messages, nodes, places)
        history.nodes = list(nodes)
        unreliable = history.unreliable(self.log.truncated is not None)
        index = {message: number for number, message in enumerate(key for _, key in messages)}
        for p, process in enumerate(processes):
            self._fill_rows(history, group.rows.get(process, []), index, p, places, unreliable)
            history.start.append(len(history.events))
        return history

    def _check_steps(
        self,
        p: int,
        process: Process,
        rows: list[tuple[int, int, int, Key | None, int | None]],
        before: int | None,
        gaps: list[Gap],
    ) -> None:
        """Two rows cannot be one step; a step that is missing is a gap."""
        last, last_row = rows[0][0], rows[0][1]
        if self.counted and last > 1 and last - 1 != before:
            gaps.append(Gap(p, None, last))
        for step, row, *_ in rows[1:]:
            if step == last:
                raise BadInput(
                    f"{self.place(row)}: step {step} of node {_name(process)} is there twice (row {last_row})"
                )
            if self.counted and step != last + 1 and (not gaps or gaps[-1].process != p):
                gaps.append(Gap(p, last, step))
            last, last_row = step, row

    def _number_messages(
        self, group: Group, processes: list[Process], deliveries_only: bool
    ) -> list[tuple[Process, Key]]:
        """Every message with its source, by source and in the order of broadcasting."""
        if not deliveries_only:
            return [
                (process, key)
                for process in processes
                for key in self._broadcast_order(process, group.rows[process])
            ]
        keys = {row[3]: None for rows in group.rows.values() for row in rows if row[2] == DELIVERED}
        if not self.layout.numbered:
            processes.append(("", 0))
            return [(processes[-1], key) for key in keys if key is not None]
        found = [key for key in keys if isinstance(key, tuple)]
        for key in found:
            if key[:2] not in group.rows:
                group.rows[key[:2]] = []
                processes.append(key[:2])
        rank = {process: place for place, process in enumerate(processes)}
        found.sort(key=lambda key: (rank[key[:2]], key[2]))
        return [(key[:2], key) for key in found]

    def _broadcast_order(
        self, process: Process, rows: list[tuple[int, int, int, Key | None, int | None]]
    ) -> list[Key]:
        keys: list[Key] = []
        last: int | None = None
        for _, row, kind, key, _ in rows:
            if kind != BROADCAST or key is None:
                continue
            if isinstance(key, tuple):
                if last is not None and key[2] <= last:
                    raise BadInput(
                        f"{self.place(row)}: node {_name(process)} broadcasts number {key[2]} after {last}, "
                        "but numbers ascend with step (if they are only names: --columns message=…)"
                    )
                last = key[2]
            keys.append(key)
        return keys

    def _fill_messages(
        self,
        history: History,
        group: Group,
        messages: list[tuple[Process, Key]],
        nodes: dict[str, int],
        places: dict[Process, int],
    ) -> None:
        counts = [0] * (len(history.node_of) + 1)
        history.deadline = [NEVER] * len(messages)
        if self.has_destinations:
            history.addressed, history.address_start, history.addresses = [], [0], []
        for place, (process, key) in enumerate(messages):
            p = places[process]
            counts[p + 1] += 1
            history.source.append(p)
            history.number.append(key[2] if isinstance(key, tuple) else place)
            if history.labels is not None:
                assert isinstance(key, str)
                history.labels.append(key)  # type: ignore[attr-defined]
            history.position.append(-1)
            said = group.broadcasts.get(key)
            if said is not None:
                history.deadline[place] = said.deadline
            if history.addresses is not None:
                to = None if said is None else said.destinations
                history.addressed.append(0 if to is None else 1)  # type: ignore[union-attr]
                history.addresses.extend(sorted(nodes.setdefault(name, len(nodes)) for name in to or ()))
                history.address_start.append(len(history.addresses))  # type: ignore[union-attr]
        for p in range(len(counts) - 1):
            counts[p + 1] += counts[p]
        history.base = counts

    def _fill_rows(
        self,
        history: History,
        rows: list[tuple[int, int, int, Key | None, int | None]],
        index: dict[Key, int],
        p: int,
        places: dict[Process, int],
        unreliable: set[int],
    ) -> None:
        for step, _, kind, key, clock in rows:
            if kind == OTHER or key is None:
                continue
            message = index.get(key)
            if kind == BROADCAST:
                assert message is not None
                history.position[message] = len(history.events)
                code = 2 * message
            elif message is None:
                source = places.get(key[:2], ABSENT) if isinstance(key, tuple) else ANYONE
                hidden = source == ABSENT and key[0] in history.nodes
                hidden = hidden and history.may_hide(history.nodes.index(key[0]), int(key[1]))
                if source not in unreliable and not hidden:
                    history.ghost_count += 1
                    if len(history.ghosts) < GHOSTS_KEPT:
                        history.ghosts.append(Ghost(p, step, _label(key)))
                history.deliveries += 1
                code = GHOST
            else:
                history.deliveries += 1
                code = 2 * message + 1
                history.clock_missing = history.clock_missing or clock is None
            history.events.append(code)
            history.steps.append(step)
            history.clock.append(0 if clock is None else clock)  # type: ignore[union-attr]


def whole(value: Any, row: int, column: str, place: Place) -> int:
    """A whole number of 64 bits, however it was written."""
    number: int | None = None
    if isinstance(value, str):
        try:
            number = int(value)
        except ValueError:
            number = None
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif hasattr(value, "__index__") and not isinstance(value, bool):
        number = int(value)
    if number is None:
        what = "is missing" if value is None or value == "" else f"is not a whole number: {_shown(value)}"
        raise BadInput(f"{place(row)}: {column} {what}")
    if not -_LARGEST <= number <= _LARGEST:
        raise BadInput(f"{place(row)}: {column} is too large: {_shown(value)}")
    return number


def text(value: Any, row: int, column: str, place: Place) -> str:
    """A name: text, or a number written as text (2.0, which a table with holes makes of 2, is 2)."""
    if isinstance(value, str):
        if value == "":
            raise BadInput(f"{place(row)}: {column} is missing")
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if value is None or isinstance(value, (float, list, dict)):
        what = "is missing" if value is None else f"is not a name: {_shown(value)}"
        raise BadInput(f"{place(row)}: {column} {what}")
    return str(value)


def destinations(value: Any, row: int, place: Place) -> frozenset[str] | None:
    """To whom a message is addressed: a list, or names between spaces, commas, semicolons or bars.

    None is everybody.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            raise BadInput(f"{place(row)}: destinations are not a list: {_shown(value)}") from None
    if isinstance(value, str):
        return frozenset(part for part in _SEPARATORS.split(value) if part)
    if isinstance(value, (list, tuple)):
        return frozenset(text(part, row, "destinations", place) for part in value)
    raise BadInput(f"{place(row)}: destinations are not a list: {_shown(value)}")


def _last_step(group: Group, processes: list[Process], p: int) -> int | None:
    """Where the node's life before this one ended: steps may continue from there."""
    if p == 0 or processes[p - 1][0] != processes[p][0]:
        return None
    return max(row[0] for row in group.rows[processes[p - 1]])


def _name(process: Process) -> str:
    return f"{process[0]} (incarnation {process[1]})" if process[1] else process[0]


def _label(key: Key) -> str:
    return key if isinstance(key, str) else name_message(*key)


def _shown(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 60 else written[:57] + "..."
