"""The causal pasts that Spark tasks share: candidates and direct predecessors against plain sets."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from precede.witness.checks.pasts import candidates, direct

Row = tuple[int, bool]
"""A message, and whether the row is its broadcast."""


def draw(random: Random, processes: int, messages: int) -> tuple[list[list[Row]], list[int]]:
    """Draw the rows of each process and the source of each message; a source's messages are consecutive."""
    source = sorted(random.randrange(processes) for _ in range(messages))
    rows: list[list[Row]] = [[] for _ in range(processes)]
    undelivered: list[set[int]] = [set() for _ in range(processes)]
    waiting = [[m for m in range(messages) if source[m] == p] for p in range(processes)]
    while any(waiting) or (any(undelivered) and random.random() < 0.9):
        p = random.randrange(processes)
        if waiting[p] and random.random() < 0.4:
            message = waiting[p].pop(0)
            rows[p].append((message, True))
            for other in range(processes):
                if other != p:
                    undelivered[other].add(message)
        elif undelivered[p]:
            message = random.choice(sorted(undelivered[p]))
            undelivered[p].discard(message)
            rows[p].append((message, False))
    return rows, source


def closures(rows: list[list[Row]], source: list[int]) -> dict[int, set[int]]:
    """Return every message's past, itself included."""
    pasts: dict[int, set[int]] = {}
    while len(pasts) < len(source):
        for own in rows:
            past: set[int] = set()
            for message, is_broadcast in own:
                if is_broadcast:
                    past = past | {message}
                    pasts[message] = past
                elif message in pasts:
                    past = past | pasts[message]
                else:
                    break
    return pasts


def flat(rows: list[list[Row]], source: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    start = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    events = np.array([2 * message + (not sent) for own in rows for message, sent in own], np.int32)
    base = np.searchsorted(source, range(len(rows) + 1)).astype(np.int32)
    return start, events, np.array(source, np.int32), base


@pytest.mark.parametrize("seed", range(40))
def test_direct_predecessors_have_the_past_of_all(seed: int) -> None:
    random = Random(seed)
    rows, source = draw(random, random.randint(2, 4), random.randint(1, 14))
    start, events, sources, base = flat(rows, source)
    true_pasts = closures(rows, source)
    # A schedule row by row: every broadcast before its deliveries.
    cursor, who, until = start[:-1].tolist(), [], []
    out: set[int] = set()
    while len(who) < len(events):
        for p in range(len(rows)):
            if cursor[p] < start[p + 1] and (events[cursor[p]] % 2 == 0 or int(events[cursor[p]]) >> 1 in out):
                out.add(int(events[cursor[p]]) >> 1)
                cursor[p] += 1
                who.append(p)
                until.append(cursor[p])
    pasts = np.zeros((len(source), len(rows)), np.int16)
    keep = np.zeros(len(events), np.uint8)
    schedule = (np.array(who, np.int32), np.array(until, np.int32), len(who))
    direct(start, events, sources, base, schedule, pasts, keep)
    for message, past in true_pasts.items():
        # A rank stands for all earlier messages of its source: each broadcast follows the one before.
        ranks = [max((m - base[p] + 1 for m in past if source[m] == p), default=0) for p in range(len(rows))]
        assert pasts[message].tolist() == ranks
    for p, own in enumerate(rows):
        since: list[tuple[int, int]] = []
        for place, (message, sent) in enumerate(own, int(start[p])):
            if not sent:
                since.append((place, message))
                continue
            assert keep[place] == 1
            before = {message - 1} if message > base[p] else set()
            expected = {
                at
                for at, one in since
                if not any(one in true_pasts[other] for _, other in since if other != one)
                and not any(one in true_pasts[other] for other in before)
            }
            # A later delivery is kept first, so a message in the past of an earlier one may be kept too.
            assert expected <= {at for at, _ in since if keep[at]}
            for at, one in since:
                if at not in expected and keep[at]:
                    assert not any(one in true_pasts[other] for later, other in since if later > at)
                    assert not any(one in true_pasts[other] for other in before)
            since = []


@pytest.mark.parametrize("seed", range(40))
def test_candidates_are_broadcasts_and_the_news_before_them(seed: int) -> None:
    random = Random(seed)
    rows, source = draw(random, random.randint(2, 4), random.randint(1, 14))
    start, events, sources, base = flat(rows, source)
    masked = {at for at in range(len(events)) if events[at] & 1 and random.random() < 0.1}
    for at in masked:
        events[at] = -1
    for p in range(len(rows)):
        begin, end = int(start[p]), int(start[p + 1])
        kept = np.empty(end - begin, np.int64)
        count = candidates(begin, end, events, sources, base, np.zeros(len(rows), np.int32), kept)
        expected: list[int] = []
        known: dict[int, int] = {}
        low = begin
        for at in range(begin, end):
            if at in masked or events[at] & 1:
                continue
            news = []
            for earlier in range(at - 1, low - 1, -1):
                message = int(events[earlier]) >> 1
                if earlier not in masked and message > known.get(source[message], -1):
                    known[source[message]] = message
                    news.append(earlier)
            expected += [*reversed(news), at]
            low = at + 1
        assert kept[:count].tolist() == expected
