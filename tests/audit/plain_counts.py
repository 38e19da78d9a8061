"""A plain second count of the MobiClique log, to compare with the package. It shares no code with it.
 It works with sets of pairs instead of vectors: `before[m]` is the set of all messages in the past of m. A pair
of instants at one phone is ordered if they differ by more than the margin; otherwise both orders are possible.
Run it as `python -m tests.audit.plain_counts FOLDER`.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

NEVER, ALWAYS = float("inf"), float("-inf")


def read(folder: Path, name: str) -> list[list[str]]:
    with open(folder / name, newline="") as file:
        return [row for row in csv.reader(file, delimiter=";") if row and not row[0].startswith("#")]


class Log:
    """First copies as intervals of the receiver's clock: `seen[phone][message] = (earliest, latest)`."""

    def __init__(self, folder: Path) -> None:
        self.author: dict[str, str] = {}
        self.created: dict[str, int] = {}
        self.kind: dict[str, str] = {}
        for message, author, created, kind, destination in read(folder, "messages.csv"):
            if kind == "B":
                continue
            self.author[message], self.created[message] = author, int(created)
            self.kind[message] = "direct" if kind == "U" else destination
        # The writer of a row of reception.csv is in the third column: it is the receiver.
        times: dict[tuple[str, str], list[int]] = defaultdict(list)
        heard_from = set()
        for _, message, receiver, sender, at in read(folder, "reception.csv"):
            if message != "-1":
                times[receiver, message].append(int(at))
                heard_from.add((sender, message))
        sent: dict[tuple[str, str], list[int]] = defaultdict(list)
        accepted = set()
        for _, message, _, sender, receiver, at, status in read(folder, "transmission.csv"):
            if message != "-1":
                sent[sender, message].append(int(at))
                if status == "0":
                    accepted.add((receiver, message))
        self.seen: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
        for phone, message in sorted({*times, *sent, *accepted, *heard_from}):
            if self.author[message] == phone:
                continue
            first = min(times.get((phone, message), [NEVER]))  # type: ignore[type-var]
            relayed = min(sent.get((phone, message), [NEVER]))  # type: ignore[type-var]
            if first <= relayed and first < NEVER:
                self.seen[phone][message] = (first, first)
            else:  # the row of the first copy is missing: it came at some time before it was sent on
                self.seen[phone][message] = (ALWAYS, relayed)


def count(log: Log, order: str, margin: int, certain: bool, group: str | None = None) -> int:
    """Count the late first copies: those that are late in every order (certain), or in some order."""
    messages = [m for m in log.author if group is None or log.kind[m] == group]
    chosen = set(messages)

    def precedes(one: tuple[float, float], other: tuple[float, float]) -> bool:
        if certain:
            return one[1] + margin < other[0]
        return not other[1] + margin < one[0]

    before: dict[str, set[str]] = {m: set() for m in messages}
    for m in messages:
        for other in messages:
            same_author = log.author[other] == log.author[m] and other != m
            if same_author and (log.created[other], int(other)) < (log.created[m], int(m)):
                before[m].add(other)
        if order == "causal":
            instant = (log.created[m], log.created[m])
            for other, when in log.seen.get(log.author[m], {}).items():
                if other in chosen and precedes(when, instant):
                    before[m].add(other)
    if order == "causal":
        changed = True
        while changed:
            changed = False
            for m in messages:
                more = set().union(*(before[other] for other in before[m])) - before[m] if before[m] else set()
                if more:
                    before[m] |= more
                    changed = True
    late = 0
    for copies in log.seen.values():
        mine = [(m, when) for m, when in copies.items() if m in chosen]
        for m, when in mine:
            late += any(m in before[other] and other != m and precedes(then, when) for other, then in mine)
    return late


if __name__ == "__main__":
    audited = Log(Path(sys.argv[1]))
    print("first copies", sum(map(len, audited.seen.values())))
    for the_order in ("fifo", "causal"):
        for the_margin in (0, 1, 60, 600):
            least = count(audited, the_order, the_margin, True)
            print(the_order, the_margin, least, count(audited, the_order, the_margin, False))
    for the_group in sorted(set(audited.kind.values())):
        row = [count(audited, o, 0, c, the_group) for o in ("fifo", "causal") for c in (True, False)]
        print(the_group, row)
