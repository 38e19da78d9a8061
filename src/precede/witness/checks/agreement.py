"""The check of agreement: what one correct member delivers, every correct member of a known membership does.

A member is correct if it kept its state, so that the log has one incarnation of it. The log must end after the
network has healed and everything was delivered: rows cannot tell a message that is lost from one on its way.
Missing rows never prove a lack, so a member whose rows have a gap lacks nothing.
"""

from collections.abc import Sequence

from msgspec import Struct

from precede.witness.history import History


class Lack(Struct, frozen=True):
    """A process that did not deliver a message, and the row in which another member delivered it."""

    process: int
    event: int


class Agreement(Struct):
    """The result of the check. `violations` counts every lack, `lacks` has the first ones.

    `reasons` say why the check cannot be decided; they are empty if it can.
    """

    violations: int
    lacks: list[Lack]
    reasons: list[str]


def check_agreement(
    history: History, members: Sequence[str], truncated: bool, deliveries_only: bool, most: int
) -> Agreement:
    """Find the messages that one correct member delivered and another correct member did not.

    `members` are the names of the membership. All lacks are counted, and the first `most` are kept. If the log
    is `truncated`, no lack is reported. A member without rows is a reason, not a lack. In a log with
    `deliveries_only` that is a member without deliveries: the history has processes that are sources alone.
    """
    incarnations: dict[str, list[int]] = {}
    for process in range(history.processes):
        if deliveries_only and history.start[process] == history.start[process + 1]:
            continue
        incarnations.setdefault(str(history.nodes[int(history.node_of[process])]), []).append(process)
    absent = [name for name in members if name not in incarnations]
    reasons = [f"member {name} neither broadcast nor delivered: was its log gathered?" for name in absent]
    if absent:
        _drop_unproven_ghosts(history)
    correct = [incarnations[name][0] for name in members if len(incarnations.get(name, ())) == 1]
    delivered: dict[int, dict[int, int]] = {process: _delivered(history, process) for process in correct}
    first: dict[int, int] = {}
    for rows in delivered.values():
        for message, event in rows.items():
            first.setdefault(message, event)
    unproven = {gap.process for gap in history.gaps}
    violations = 0
    lacks: list[Lack] = []
    for process in correct if not truncated else ():
        missing = [event for message, event in first.items() if message not in delivered[process]]
        if process not in unproven:
            violations += len(missing)
            lacks += [Lack(process, event) for event in missing[: most - len(lacks)]]
    return Agreement(violations, lacks, reasons)


def _drop_unproven_ghosts(history: History) -> None:
    """Forget deliveries without a broadcast if message ids are opaque: their source's log may be absent."""
    if history.labels is not None:
        history.ghost_count, history.ghosts = 0, []


def _delivered(history: History, process: int) -> dict[int, int]:
    """Return the messages that a process delivered, each with the row of its delivery."""
    rows: dict[int, int] = {}
    for event in range(int(history.start[process]), int(history.start[process + 1])):
        code = int(history.events[event])
        if code >= 0 and code & 1:
            rows.setdefault(code >> 1, event)
    return rows
