"""The errors of the WAS paper as directed schedules: each is violated with one fix off and clean with it on.

The stations form a line s1 - s0 - s2; a wired hop takes 10 ms, a radio frame 1 ms. Host 10 moves; hosts 11, 12
and 13 stay in cells 1, 2 and 0. docs/papers/was2021.md explains each schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.protocols.was2021.theatre import Theatre, Verdict

Schedule = Callable[[str], Verdict]

HOME = {11: 1, 12: 2, 13: 0}


def stage(without: str, first: int | None, others: tuple[int, ...], **options: Any) -> Theatre:
    """Host 10 in its first cell and the others at home, all connected well before 1000 ms."""
    theatre = Theatre(hosts=(10, *others), without=without, **options)
    if first is not None:
        theatre.at(100, theatre.enter, 10, first)
    for host in others:
        theatre.at(100, theatre.enter, host, HOME[host])
    return theatre


def say(theatre: Theatre, host: int, start: float, step: float, *words: str) -> None:
    """Broadcast several messages, `step` ms apart."""
    for place, word in enumerate(words):
        theatre.at(start + place * step, theatre.say, host, word)


def duplicate_connect_ack(without: str) -> Verdict:
    """E1: a second connectACK for the same connection arrives after the host has delivered messages."""
    theatre = stage(without, 0, (13,), connect_retry="41ms")
    theatre.at(1000, theatre.enter, 10, 2)
    # The handoff ends at 1041; connect is repeated just then, and the answer to that is late.
    theatre.delay(1041.5, 1050, 100, "connect_ack", host=10)
    say(theatre, 13, 1050, 10, "a", "b", "c")
    say(theatre, 13, 1250, 10, "d")
    theatre.run(6000)
    return theatre.verdict(due=(10, 13))


def number_taken_back(without: str) -> Verdict:
    """E2: two own messages are lost, the host moves, connectACK says 1, and the next message is (10, 2)."""
    theatre = stage(without, 1, (13,))
    say(theatre, 10, 1000, 10, "a", "b", "c")
    theatre.lose(1005, 1200, "up", host=10)
    theatre.at(1040, theatre.enter, 10, 0)
    say(theatre, 10, 1300, 10, "d", "e")
    theatre.run(6000)
    return theatre.verdict(due=(10, 13))


def second_request_overtaken(without: str) -> Verdict:
    """E3: s0 to s1 and back before s1's Req2 arrives at s0, which then gives away a connected host's record."""
    theatre = stage(without, 0, (12,))
    theatre.at(1000, theatre.enter, 10, 1)
    theatre.at(1022, theatre.enter, 10, 0)
    say(theatre, 12, 1040, 40, "a", "b", "c")
    theatre.run(8000)
    return theatre.verdict(due=(10, 12))


def no_delete(without: str) -> Verdict:
    """E4: the host is back at s0 before Req1 arrives there. s0 confirms at once; s1's handoff never ends."""
    theatre = stage(without, 0, (11, 13))
    theatre.at(1000, theatre.enter, 10, 1)
    theatre.at(1005, theatre.enter, 10, 0)
    say(theatre, 13, 1100, 40, *(f"w{number}" for number in range(30)))
    theatre.run(8000)
    return theatre.verdict(due=(10, 11, 13))


def missed_and_discarded(without: str) -> Theatre:
    """Host 10 misses "a" and "b" at s1; host 13 at s0 acknowledges them, so s0 has discarded them."""
    theatre = stage(without, 1, (13,), ack_interval="40ms")
    theatre.lose(1000, 1150, "data", host=10)
    say(theatre, 13, 1000, 5, "a", "b")
    return theatre


def recovery_deadlock(without: str) -> Verdict:
    """E5: the host moves before it acknowledges the recovered messages: the handoff never ends."""
    theatre = missed_and_discarded(without)
    theatre.lose(1100, 1160, "private", host=10)
    theatre.at(1100, theatre.enter, 10, 0)
    theatre.at(1150, theatre.enter, 10, 2)
    say(theatre, 13, 1400, 10, "c")
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def recovery_duplicate(without: str) -> Verdict:
    """E5: the acknowledgement of recovered messages is lost, and they are sent again in a later Ses."""
    theatre = missed_and_discarded(without)
    theatre.at(1100, theatre.enter, 10, 0)
    theatre.lose(1100, 1190, "ack", host=10)
    theatre.at(1180, theatre.enter, 10, 2)
    theatre.lose(1180, 1199, "connect", host=10)
    theatre.at(1200, theatre.enter, 10, 0)
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def no_boundary(without: str) -> Verdict:
    """E6: messages that s2 receives between Rsp1 and Rsp2, and s1 did not have at Req2, count as delivered."""
    theatre = stage(without, 1, (12,))
    theatre.at(1000, theatre.enter, 10, 2)
    # At s2: connect 1001, Rsp1 1041, Rsp2 1081. Broadcast in cell 2 after 1041, at s1 only after Req2 (1061).
    say(theatre, 12, 1043, 2, *(f"w{number}" for number in range(10)))
    theatre.run(8000)
    return theatre.verdict(due=(10, 12))


def range_discard(without: str) -> Verdict:
    """E7: s2 discards "b" by range while "a", which precedes it, is missing in its cell; then host 10 comes."""
    theatre = stage(without, 1, (12, 13))
    say(theatre, 13, 1000, 20, "a", "b")
    theatre.lose(1000, 1200, "data", host=10)
    theatre.lose(1000, 1250, "data", host=12, word="a")
    theatre.at(1100, theatre.enter, 10, 2)
    theatre.run(8000)
    return theatre.verdict(due=(10, 12, 13))


def stale_ranges(without: str) -> Verdict:
    """E8: host 10 reports "b" by range and reconnects: its RBuffer is empty, but s1 does not repeat "b"."""
    theatre = stage(without, 1, (13,))
    say(theatre, 13, 1000, 20, "a", "b")
    theatre.lose(1000, 1200, "data", host=10, word="a")
    theatre.at(1100, theatre.enter, 10, None)
    theatre.at(1200, theatre.enter, 10, 1)
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def heard_in_handoff(without: str) -> Verdict:
    """E9: s1 has a, b and s2 has b, a. Host 10 delivered a at s1 and receives it at s2 while connecting."""
    theatre = stage(without, 1, (11, 12))
    theatre.at(1000, theatre.say, 11, "a")
    theatre.at(1000, theatre.say, 12, "b")
    theatre.lose(1000, 1100, "data", host=10, word="b")
    theatre.at(1018, theatre.enter, 10, 2)
    theatre.run(8000)
    return theatre.verdict(due=(10, 11, 12))


def late_uplink(without: str) -> Verdict:
    """E10: host 10's message reaches s1 after s1 has told s0 which messages it accepted."""
    theatre = stage(without, 1, (12, 13))
    theatre.delay(1000, 1000, 22, "up", host=10)
    theatre.at(1000, theatre.say, 10, "a")
    theatre.at(1001, theatre.enter, 10, 0)
    theatre.run(8000)
    return theatre.verdict(due=(10, 12, 13))


def late_connect(without: str) -> Verdict:
    """E11: the connect for s1 arrives after the Delete of the next connection."""
    theatre = stage(without, 0, (13,))
    theatre.delay(1000, 1010, 150, "connect", host=10)
    theatre.at(1000, theatre.enter, 10, 1)
    theatre.at(1020, theatre.enter, 10, 2)
    say(theatre, 13, 1200, 40, *(f"w{number}" for number in range(25)))
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def leave_in_handoff(without: str) -> Verdict:
    """E12: host 10 leaves during a handoff: PS names only s1, with a number that s1 no longer has."""
    theatre = stage(without, 1, (12, 13))
    theatre.at(1000, theatre.enter, 10, 0)
    theatre.at(1015, theatre.leave, 10)
    say(theatre, 13, 1100, 40, *(f"w{number}" for number in range(30)))
    theatre.run(8000)
    return theatre.verdict(due=(12, 13))


def newer_connect(without: str) -> Verdict:
    """E13: s1, then s2, then s0 (lost), then s2 again while the first handoff's Rsp2 is in flight."""
    theatre = stage(without, 1, (13,))
    theatre.at(1000, theatre.enter, 10, 2)
    theatre.lose(1050, 1060, "connect", host=10)
    theatre.at(1050, theatre.enter, 10, 0)
    theatre.at(1070, theatre.enter, 10, 2)
    say(theatre, 13, 1200, 20, "a", "b")
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def no_negative_answer(without: str) -> Verdict:
    """E14: s1 has declared host 10 down; s2 sends Req1 to s1, which does not answer."""
    theatre = stage(without, 1, (13,), down_after="500ms")
    theatre.at(1000, theatre.enter, 10, None)
    theatre.at(3000, theatre.enter, 10, 2)
    theatre.run(4000)
    say(theatre, 13, 4000, 20, "a")
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def rejoin_duplicates(without: str) -> Verdict:
    """E15: after a down decision host 10 gets messages that s2 still keeps and that it delivered long ago."""
    theatre = stage(without, 1, (12, 13), down_after="500ms", ack_interval="100ms", retransmit="200ms")
    say(theatre, 13, 1000, 20, "a", "b", "c")
    theatre.lose(1000, 4000, "data", host=12, word="a")
    theatre.at(1600, theatre.enter, 10, None)
    theatre.at(3000, theatre.enter, 10, 2)
    theatre.run(9000)
    return theatre.verdict(due=(10, 12, 13))


def silent_down(without: str) -> Verdict:
    """E16: a host has nothing to acknowledge for longer than the down time-out."""
    theatre = stage(without, 1, (13,), down_after="2s")
    say(theatre, 13, 6000, 20, "a", "b")
    theatre.run(8000)
    if "E16" in without:
        return theatre.verdict(due=(10,))
    return theatre.verdict(due=(10, 13))


def crash_after_delivery(without: str) -> Verdict:
    """E17: a host crashes between a delivery and the acknowledgement that would have saved it."""
    theatre = stage(without, 0, (13,), durable=True)
    say(theatre, 13, 1000, 20, "a")
    theatre.at(1100, theatre.crash, 10)
    theatre.at(1200, theatre.restart, 10)
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def crash_after_connect_ack(without: str) -> Verdict:
    """E17: a host crashes with a new Ses_LC and an old seq_NC saved: recovery acknowledges too much."""
    theatre = stage(without, 1, (11, 12), durable=True)
    # s1 numbers x, y, z and s2 numbers z, x, y; host 10 has x and y, so 3 is next at s1 and 1 at s2.
    say(theatre, 11, 1000, 2, "x", "y")
    theatre.at(1001, theatre.say, 12, "z")
    theatre.lose(1000, 2300, "data", "private", host=10, word="z")
    theatre.lose(1000, 2300, "ack", host=12)
    theatre.at(1900, theatre.enter, 10, 2)
    theatre.at(2000, theatre.crash, 10)
    theatre.at(2200, theatre.restart, 10)
    theatre.run(9000)
    return theatre.verdict(due=(10, 11, 12))


def recover_same_number(without: str) -> Verdict:
    """E18a: host 10 crashes at s0 and restarts at s1 with the same Ses: s0 ignores Req1 as an old one."""
    theatre = stage(without, 0, (13,), durable=True)
    theatre.at(1000, theatre.crash, 10)
    theatre.at(1100, theatre.enter, 10, 1)
    theatre.at(1200, theatre.restart, 10)
    say(theatre, 13, 1500, 20, "a")
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def recover_without_stations(without: str) -> Verdict:
    """E18b: PS is lost in the crash; s1 asks no station and makes a new record, and s0 keeps the old one."""
    theatre = stage(without, 0, (13,), durable=True)
    theatre.at(1000, theatre.crash, 10)
    theatre.at(1050, theatre.enter, 10, 1)
    say(theatre, 13, 1100, 20, "a")
    theatre.at(1200, theatre.restart, 10)
    theatre.run(8000)
    return theatre.verdict(due=(10, 13))


def two_owners(without: str) -> Verdict:
    """E18c: a host joins at s1 (answer lost), then at s2, and recovers at s1 before s2's Delete arrives."""
    theatre = stage(without, None, (11, 12), durable=True, retransmit="107ms")
    # s1 numbers a, b and s2 numbers b, a.
    theatre.at(1000, theatre.say, 11, "a")
    theatre.at(1000, theatre.say, 12, "b")
    theatre.lose(1000, 1500, "ack")
    theatre.lose(1100, 1103, "connect_ack", host=10)
    theatre.at(1100, theatre.enter, 10, 1)
    # Joined at s2 at 1107, where "b" is repeated at 1108; the Delete is at s1 at 1126.
    theatre.at(1105, theatre.enter, 10, 2)
    theatre.at(1112, theatre.crash, 10)
    theatre.at(1113, theatre.enter, 10, 1)
    theatre.at(1114, theatre.restart, 10)
    theatre.run(8000)
    return theatre.verdict(due=(10, 11, 12))


CASES: tuple[tuple[str, Schedule, str], ...] = (
    ("E1", duplicate_connect_ack, "duplicates"),
    ("E2", number_taken_back, "missing"),
    ("E3", second_request_overtaken, "missing"),
    ("E4", no_delete, "zombies"),
    ("E5", recovery_deadlock, "unconnected"),
    ("E5", recovery_duplicate, "duplicates"),
    ("E6", no_boundary, "missing"),
    ("E7", range_discard, "causal"),
    ("E8", stale_ranges, "missing"),
    ("E9", heard_in_handoff, "duplicates"),
    ("E10", late_uplink, "duplicates"),
    ("E11", late_connect, "zombies"),
    ("E12", leave_in_handoff, "zombies"),
    ("E13", newer_connect, "unconnected"),
    ("E14", no_negative_answer, "unconnected"),
    ("E15", rejoin_duplicates, "duplicates"),
    ("E16", silent_down, "missing"),
    ("E17", crash_after_delivery, "duplicates"),
    ("E17", crash_after_connect_ack, "missing"),
    ("E18a", recover_same_number, "unconnected"),
    ("E18b", recover_without_stations, "zombies"),
    ("E18c", two_owners, "duplicates"),
)


@pytest.mark.parametrize(
    ("fix", "schedule", "wrong"), CASES, ids=lambda value: getattr(value, "__name__", value)
)
def test_schedule_is_violated_only_without_the_fix(fix: str, schedule: Schedule, wrong: str) -> None:
    assert schedule("").clean(), schedule("")
    broken = schedule(fix)
    assert getattr(broken, wrong), broken
