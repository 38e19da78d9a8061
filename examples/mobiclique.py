"""Reads the phones of SIGCOMM 2009 (CRAWDAD thlab/sigcomm2009): how far their clocks disagree, and their links.

    python -m examples.mobiclique FOLDER              prints how far the clocks are from their median
    python -m examples.mobiclique FOLDER links.csv    also writes a contact for each logged transfer

A hop in transmission.csv is sender, receiver; in reception.csv it is receiver, sender. Each row has the clock
of the phone that wrote it. A hop that was sent once and received once compares two clocks; one offset for each
phone is fitted to all of them by medians. The instants of the links are corrected by these offsets.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

ROUNDS = 200
CONTACT_S = 120
"""Phones scan every two minutes, so a link is taken to last as long."""


def rows(file: Path) -> Iterator[list[str]]:
    with file.open(encoding="utf-8") as lines:
        yield from (row for row in csv.reader(lines, delimiter=";") if not row[0].startswith("#"))


def hops(folder: Path) -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]]]:
    """Each hop with a message that was sent once and received once, and how much later it was received.

    The second list has every row as the phone that wrote it, the other phone, and the instant.
    """
    sent: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    received: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    seen: list[tuple[str, str, int]] = []
    for _, message, _, sender, receiver, at, _ in rows(folder / "transmission.csv"):
        seen.append((sender, receiver, int(at)))
        if message != "-1":
            sent[message, sender, receiver].append(int(at))
    for _, message, receiver, sender, at in rows(folder / "reception.csv"):
        seen.append((receiver, sender, int(at)))
        if message != "-1":
            received[message, sender, receiver].append(int(at))
    once = [hop for hop, at in received.items() if len(at) == 1 and len(sent.get(hop, ())) == 1]
    return [(hop[1], hop[2], received[hop][0] - sent[hop][0]) for hop in once], seen


def offsets(compared: Sequence[tuple[str, str, int]]) -> dict[str, float]:
    """How far each phone's clock is ahead of the median clock, in seconds."""
    ahead: dict[str, float] = defaultdict(float)
    for _ in range(ROUNDS):
        told: dict[str, list[float]] = defaultdict(list)
        for sender, receiver, later in compared:
            told[receiver].append(ahead[sender] + later)
            told[sender].append(ahead[receiver] - later)
        for phone, readings in told.items():
            ahead[phone] = (ahead[phone] + median(readings)) / 2
        middle = median(ahead.values())
        for phone in ahead:
            ahead[phone] -= middle
    return dict(ahead)


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    compared, seen = hops(folder)
    ahead = offsets(compared)
    away = sorted(abs(seconds) for seconds in ahead.values())
    print(f"{len(compared)} hops compare {len(away)} clocks. Seconds from the median, by share of the phones:")
    for share in (25, 50, 75, 90, 95, 100):
        print(f"  {share:3} %  {away[min(len(away) * share // 100, len(away) - 1)]:10.1f}")
    if len(arguments) > 1:
        with Path(arguments[1]).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("a", "b", "start", "end"))
            for writing, other, at in seen:
                start = at - round(ahead.get(writing, 0))
                writer.writerow((writing, other, start, start + CONTACT_S))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
