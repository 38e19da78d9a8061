"""Causal multicast without a redundant constraint (Kshemkalyani and Singhal, Distributed Computing, 1998).

PRS learns of a delivery at most one hop away (prs1997, section 8.3). Here a log names, for each message in the
causal past, the destinations to which it is neither known to be delivered nor guaranteed to be delivered in
order. A destination that is absent from a log entry carries that knowledge implicitly, and so does a missing
entry if the log has a later one of the same source. In this way knowledge travels any number of hops. SND and
RCV are the authors' names.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.identity import NodeId
from precede.protocols.multicast.packets import INTEGER_BYTES, MulticastPacket, Stamp
from precede.protocols.multicast.process import Process, is_before
from precede.protocols.multicast.rule import Rule
from precede.protocols.prs1997.packets import Log, OptimalPacket, OptimalStamp, Remaining


@mypyc_attr(allow_interpreted_subclasses=True)
class OptimalRule(Rule):
    """Keeps the authors' LOG_j in `log`, and SR_j, the last delivered number of each source, in `reached`.

    Maps that messages share are replaced, never changed.
    """

    packet: ClassVar[type[MulticastPacket]] = OptimalPacket
    names_messages: ClassVar[bool] = True

    def __init__(self, me: Process) -> None:
        self.me = me
        self.reached = {}
        self.log: Log = {}

    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        """SND, steps 2 to 4: return a log for each destination, and record the message M in the own log.

        A destination's log leaves out the constraints of M's other destinations. M itself implies those: its
        other destinations deliver it after the messages they wait for.
        """
        covered = set(destinations)
        own_constraints: dict[Process, list[tuple[Process, int, Remaining]]] = {to: [] for to in destinations}
        base: Log = {}
        for source, entries in self.log.items():
            rest = {}
            for sent, remaining in entries.items():
                rest[sent] = left = tuple([to for to in remaining if to not in covered])
                for to in remaining:
                    if to in own_constraints:
                        own_constraints[to].append((source, sent, left))
            base[source] = _purge_null_entries(rest)
        self.log = {**base, self.me: _purge_null_entries({**base.get(self.me, {}), number: destinations})}
        return [_counted(_with(base, to, extra)) for to, extra in own_constraints.items()]

    def needs(self, stamp: OptimalStamp) -> Mapping[Process, int]:
        """RCV, step 1: return, by source, the last message that must be delivered to this process first."""
        me = self.me
        needs: dict[Process, int] = {}
        for source, entries in stamp.log.items():
            for sent, remaining in entries.items():
                if me in remaining and needs.get(source, 0) < sent:
                    needs[source] = sent
        return needs

    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: OptimalStamp
    ) -> Iterable[Process]:
        """RCV, steps 2 to 5: merge the message's log, with the message itself, into the own log."""
        self.reached[source] = number
        theirs = dict(stamp.log)
        theirs[source] = {**theirs.get(source, {}), number: destinations}
        mine = self.log
        for other, entries in theirs.items():
            without_me = {sent: _without(remaining, self.me) for sent, remaining in entries.items()}
            mine[other] = _purge_null_entries(_merge(mine.get(other, {}), without_me))
        return (source,)

    def forget(self, node: NodeId, incarnation: int) -> None:
        for source, entries in self.log.items():
            self.log[source] = _purge_null_entries(
                {
                    sent: tuple([to for to in remaining if not is_before(to, node, incarnation)])
                    for sent, remaining in entries.items()
                }
            )

    def save(self) -> Any:
        return [dict(self.log), dict(self.reached)]

    def load(self, state: Any) -> None:
        self.log, self.reached = msgspec.convert(state, tuple[Log, dict[Process, int]])

    def sizes(self) -> Mapping[str, int]:
        return {"barrier_tuples": _entries(self.log), "delivered_entries": len(self.reached)}


def _with(base: Log, to: Process, extra: Iterable[tuple[Process, int, Remaining]]) -> Log:
    """Return the log for one destination: the common log with that destination's constraints put back."""
    log = dict(base)
    for source, sent, left in extra:
        if log[source] is base[source]:
            log[source] = dict(base[source])
        log[source][sent] = (*left, to)
    return log


def _merge(mine: Mapping[int, Remaining], theirs: Mapping[int, Remaining]) -> dict[int, Remaining]:
    """Merge the entries of two logs for one source (RCV, step 4), without those that one log has emptied."""
    if not mine:
        return dict(theirs)
    my_latest, their_latest = max(mine), max(theirs)
    merged = {}
    for sent, remaining in mine.items():
        if sent in theirs:
            other = theirs[sent]
            merged[sent] = tuple([to for to in remaining if to in other])
        elif sent > their_latest:
            merged[sent] = remaining
    for sent, remaining in theirs.items():
        if sent > my_latest:
            merged[sent] = remaining
    return merged


def _purge_null_entries(entries: Mapping[int, Remaining]) -> dict[int, Remaining]:
    """PURGE_NULL_ENTRIES: return the entries that have destinations, and the latest in any case."""
    latest = max(entries)
    return {sent: remaining for sent, remaining in entries.items() if remaining or sent == latest}


def _without(remaining: Remaining, me: Process) -> Remaining:
    return tuple([to for to in remaining if to != me]) if me in remaining else remaining


def _entries(log: Log) -> int:
    """Return the number of (message, destination) pairs; an entry without destinations counts as one."""
    return sum([len(remaining) or 1 for entries in log.values() for remaining in entries.values()])


def _counted(log: Log) -> OptimalStamp:
    """Return a stamp with this log. `integers` counts source, number and destinations of each entry."""
    items = sum(map(len, log.values()))
    remaining = sum([len(left) for entries in log.values() for left in entries.values()])
    in_bytes = INTEGER_BYTES * (2 * len(log) + 2 * items + remaining)
    return OptimalStamp(2 * items + remaining, _entries(log), in_bytes, log)
