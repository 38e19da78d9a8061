"""Section 5.2 of prs1997 line by line, with N x N arrays, sets of tuples and loops that run to a fixpoint.

It is slow and simple: the tests compare `protocols/prs1997/prs.py` with it.
"""

from __future__ import annotations

Tuples = frozenset[tuple[int, int]]


def union_max(t1: Tuples, t2: Tuples) -> Tuples:
    """∪max, the paper's loop: while there are two tuples of one source, remove the smaller."""
    t = set(t1 | t2)
    change = True
    while change:
        change = False
        for i, x in list(t):
            if any(j == i and x < y for j, y in t):
                t.discard((i, x))
                change = True
    return frozenset(t)


def minus_max(t1: Tuples, t2: Tuples) -> Tuples:
    """-max, the paper's loop: remove tuples that the second set has with the same or a later number."""
    t = set(t1)
    change = True
    while change:
        change = False
        for i, x in list(t):
            if any(j == i and x <= y for j, y in t2):
                t.discard((i, x))
                change = True
    return frozenset(t)


class LiteralProcess:
    """The process P_i, with the paper's arrays `Delivered[l][k]` and `CB[k]`."""

    def __init__(self, i: int, n: int) -> None:
        self.i = i
        self.n = n
        self.sent = 0
        self.Delivered = [[0] * n for _ in range(n)]
        self.CB: list[Tuples] = [frozenset()] * n

    def send(self, destination: tuple[int, ...]) -> list[Tuples]:
        self.sent += 1
        carried = list(self.CB)
        for j in destination:
            self.CB[j] = frozenset({(self.i, self.sent)})
        return carried

    def may_deliver(self, cb_m: list[Tuples]) -> bool:
        return all(self.Delivered[k][self.i] >= x for k, x in cb_m[self.i])

    def deliver(self, j: int, sent_m: int, destination: tuple[int, ...], cb_m: list[Tuples]) -> None:
        i = self.i
        self.Delivered[j][i] = sent_m
        for k, y in cb_m[j]:
            self.Delivered[k][j] = max(self.Delivered[k][j], y)
        for k in destination:
            self.CB[k] = minus_max(union_max(self.CB[k], frozenset({(j, sent_m)})), cb_m[k])
        for k in range(self.n):
            if k not in destination and k != j:
                self.CB[k] = union_max(self.CB[k], cb_m[k])
        self.CB[j] = minus_max(self.CB[j], cb_m[j])
        for k in range(self.n):
            if k != i:
                self.CB[k] = frozenset((m, x) for m, x in self.CB[k] if self.Delivered[m][k] < x)
