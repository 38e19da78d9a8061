"""Reads a log into histories in plain Python: for small logs, display order, and machines without numpy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.witness.history import (
    ABSENT,
    ANYONE,
    BOTTOM,
    GHOST,
    GHOSTS_KEPT,
    NEVER,
    NOWHERE,
    Gap,
    Ghost,
    History,
    name_message,
    name_process,
)
from precede.witness.reading.column_names import (
    BROADCAST,
    DELIVERED,
    OBSERVED,
    OTHER,
    STARTED,
    Layout,
)
from precede.witness.reading.logs import Log
from precede.witness.reading.values import destinations, text, whole

_WORDS_SHOWN: Final = 8

Key: TypeAlias = tuple[str, int, int] | str
"""A message: its source, the source's incarnation and its number; or its opaque id."""

Process: TypeAlias = tuple[str, int]
"""A node and an incarnation."""

Rows: TypeAlias = list[tuple[int, int, int, Key | None, int | None]]
"""The rows of a process: step, row in the file, kind, message, local time."""


@final
class Broadcast:
    """The broadcast row of a message: its row in the file, its process, and its deadline and destinations."""

    def __init__(self, row: int, process: Process, deadline: int, destinations: frozenset[str] | None) -> None:
        self.row = row
        self.process = process
        self.deadline = deadline
        self.destinations = destinations


class Group:
    """The rows and broadcasts of one independent order."""

    def __init__(self) -> None:
        self.rows: dict[Process, Rows] = {}
        self.broadcasts: dict[Key, Broadcast] = {}


class PlainBuilder:
    """Reads columns in batches, checks every value, and builds one history per group (independent order)."""

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
        return self.broadcasts == 0 and not self.log.broadcasts_elsewhere

    def read(self, progress: Callable[[int], None] | None) -> list[History]:
        """Read the whole log."""
        for columns, count in self.log.read(self.layout.names_to_read()):
            self._add(columns, count)
            if progress is not None:
                progress(self.rows)
        return self._finish()

    def _add(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        """Add `count` rows; `columns` has unchecked values by the log's own column names."""
        names = self.layout.columns
        nothing: Sequence[Any] = (None,) * count
        by = [columns[name] for name in self.layout.by]
        fields = [
            columns[names[ours]] if ours in names else nothing
            for ours in ("node", "incarnation", "step", "kind", "clock_us")
        ]
        for index, (node, incarnation, step, kind, clock) in enumerate(zip(*fields, strict=True)):
            row = self.rows + 1
            self.rows = row
            key = tuple(text(values[index], row, "a column of --by", self.place) for values in by)
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = Group()
            process = (
                text(node, row, "node", self.place),
                0 if incarnation is None else whole(incarnation, row, "incarnation", self.place),
            )
            at = row if self.layout.row_order else whole(step, row, "step", self.place)
            row_kind = self._kind(kind, row)
            row_kind = self.layout.placing(row_kind, columns, index)
            message: Key | None = None
            moment: int | None = None
            if row_kind not in (OTHER, STARTED):
                message = self._message(columns, index, row, process, row_kind)
                if row_kind == BROADCAST:
                    self._broadcast(group, columns, index, row, process, message)
                elif clock is not None:
                    moment = whole(clock, row, "clock_us", self.place)
            rows = group.rows.get(process)
            if rows is None:
                rows = group.rows[process] = []
            rows.append((at, row, row_kind, message, moment))

    def _finish(self) -> list[History]:
        ordered = sorted(self.groups, key=lambda key: tuple(natural(part) for part in key))
        return [self._history(key, self.groups.pop(key), self.deliveries_only) for key in ordered]

    def _kind(self, value: Any, row: int) -> int:
        """Return BROADCAST, DELIVERED or OTHER, and remember the first words that mean neither of the two."""
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
        """Return the message that a row is about. A broadcast row may leave its source out."""
        names, place = self.layout.columns, self.place
        if not self.layout.numbered:
            return text(columns[names["message"]][index], row, "message", place)
        source = columns[names["message_source"]][index]
        incarnations = names.get("message_incarnation")
        incarnation = None if incarnations is None else columns[incarnations][index]
        number = whole(columns[names["message_number"]][index], row, "message_number", place)
        if kind == BROADCAST:
            named = (
                process[0] if source is None else text(source, row, "message_source", place),
                process[1] if incarnation is None else whole(incarnation, row, "message_incarnation", place),
            )
            if named != process:
                node, other = name_process(*process), name_process(*named)
                raise BadInput(f"{place(row)}: node {node} broadcasts a message whose source is {other}")
            return (*process, number)
        return (
            text(source, row, "message_source", place),
            0 if incarnation is None else whole(incarnation, row, "message_incarnation", place),
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
        """Remember the broadcast of a message. Raises BadInput if it was broadcast before."""
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
            incarnation=[incarnation for _, incarnation in processes],
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
            above=[],
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
        rows: Rows,
        before: int | None,
        gaps: list[Gap],
    ) -> None:
        """Raise BadInput if a step occurs twice; add the first gap after the last step `before` to `gaps`."""
        last, last_row = rows[0][0], rows[0][1]
        if self.counted and last > 1 and last - 1 != before:
            gaps.append(Gap(p, None, last))
        for step, row, *_ in rows[1:]:
            if step == last:
                raise BadInput(
                    f"{self.place(row)}: step {step} of node {name_process(*process)} occurs twice "
                    f"(first in row {last_row})"
                )
            if self.counted and step != last + 1 and (not gaps or gaps[-1].process != p):
                gaps.append(Gap(p, last, step))
            last, last_row = step, row

    def _number_messages(
        self, group: Group, processes: list[Process], deliveries_only: bool
    ) -> list[tuple[Process, Key]]:
        """List every message with its source, by source and in the order of broadcasting.

        Without broadcast rows the messages are those that were delivered; opaque ids get a nameless source.
        """
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
        numbered = [key for key in keys if isinstance(key, tuple)]
        for key in numbered:
            if key[:2] not in group.rows:
                group.rows[key[:2]] = []
                processes.append(key[:2])
        rank = {process: place for place, process in enumerate(processes)}
        numbered.sort(key=lambda key: (rank[key[:2]], key[2]))
        return [(key[:2], key) for key in numbered]

    def _broadcast_order(self, process: Process, rows: Rows) -> list[Key]:
        """Return a process's messages in the order of broadcasting. Raises BadInput unless numbers ascend."""
        keys: list[Key] = []
        last: int | None = None
        for _, row, kind, key, _ in rows:
            if kind != BROADCAST or key is None:
                continue
            if isinstance(key, tuple):
                if last is not None and key[2] <= last:
                    raise BadInput(
                        f"{self.place(row)}: node {name_process(*process)} broadcasts number {key[2]} after "
                        f"{last}, but numbers ascend with step (if they are only names: --columns message=…)"
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
        """Fill the columns of a history that have one entry per message."""
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
            broadcast = group.broadcasts.get(key)
            if broadcast is not None:
                history.deadline[place] = broadcast.deadline
            if history.addresses is not None:
                to = None if broadcast is None else broadcast.destinations
                history.addressed.append(0 if to is None else 1)  # type: ignore[union-attr]
                history.addresses.extend(sorted(nodes.setdefault(name, len(nodes)) for name in to or ()))
                history.address_start.append(len(history.addresses))  # type: ignore[union-attr]
        for p in range(len(counts) - 1):
            counts[p + 1] += counts[p]
        history.base = counts

    def _fill_rows(
        self,
        history: History,
        rows: Rows,
        index: dict[Key, int],
        p: int,
        places: dict[Process, int],
        unreliable: set[int],
    ) -> None:
        """Append the rows of process p to a history. Count deliveries of messages that nobody broadcast.

        A broadcast whose row may be missing, because its process is among `unreliable`, is not counted.
        """
        gathered = {node for node, _ in places}
        above = BOTTOM
        for step, _, kind, key, clock in rows:
            if kind in (OBSERVED, STARTED):  # a node that starts had crashed before the delivery
                above = BOTTOM if key is None else index.get(key, NOWHERE)
            if kind not in (BROADCAST, DELIVERED) or key is None:
                continue
            message = index.get(key)
            if kind == BROADCAST:
                assert message is not None
                history.position[message] = len(history.events)
                code = 2 * message
            elif message is None:
                source = places.get(key[:2], ABSENT) if isinstance(key, tuple) else ANYONE
                may_be_missing = False
                if source == ABSENT and source not in unreliable:
                    if key[0] in gathered:
                        node = history.nodes.index(key[0])
                        may_be_missing = history.may_be_missing(node, int(key[1]))
                    else:
                        may_be_missing = True
                        history.add_ungathered(key[0], Ghost(p, step, _label(key)))
                if source not in unreliable and not may_be_missing:
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
            history.above.append(above)  # type: ignore[union-attr]
            above = BOTTOM if kind == DELIVERED else above
            history.steps.append(step)
            history.clock.append(0 if clock is None else clock)  # type: ignore[union-attr]


def _last_step(group: Group, processes: list[Process], p: int) -> int | None:
    """Return the last step of the node's incarnation before this one, from which steps may continue."""
    if p == 0 or processes[p - 1][0] != processes[p][0]:
        return None
    return max(row[0] for row in group.rows[processes[p - 1]])


def _label(key: Key) -> str:
    return key if isinstance(key, str) else name_message(*key)
