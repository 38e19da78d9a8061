"""Replays of a deployment: the same copies, and the same links, under protocols."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from precede import cli
from precede.audit.bounds import bound
from precede.audit.clocks import compare_clocks
from precede.audit.deployment import Hop
from precede.audit.event_files import read_event_files
from precede.audit.mobiclique import read_mobiclique
from precede.audit.replay import PROTOCOLS, replay
from precede.audit.same_copies import replay_copies
from precede.audit.same_links import meetings_seen, replay_links
from precede.cli.evidence.audit import DEFAULT_PROTOCOLS
from precede.core.errors import BadInput
from tests.audit.test_reading import CHAT, write
from tests.traces.real_data import real

S = 1_000_000
END = 1_000_000 * S


def test_an_answer_waits_for_its_question(tmp_path: Path) -> None:
    copies = read_event_files([write(tmp_path, CHAT)]).copies()
    arrival = replay_copies(copies, "unordered", {}, 1, END)
    assert (arrival.causal, arrival.delivered, max(arrival.waits_us)) == (1, 3, 0)
    causal = replay_copies(copies, "causal_barrier", {}, 1, END)
    assert (causal.causal, causal.delivered, max(causal.waits_us)) == (0, 3, 1 * S)


def test_a_message_that_never_came_is_waited_for_until_its_lifetime_ends(tmp_path: Path) -> None:
    text = "".join(line for line in CHAT.splitlines(keepends=True) if not line.startswith("cem,received,q"))
    copies = read_event_files([write(tmp_path, text)]).copies()
    causal = replay_copies(copies, "causal_barrier", {}, 1, END)
    assert (causal.delivered, causal.waiting) == (1, 1)
    delta = replay_copies(copies, "delta_causal", {"lifetime": "10s", "skew": "0s"}, 1, END)
    assert (delta.delivered, delta.waiting, delta.causal) == (2, 0, 0)
    assert max(delta.waits_us) == 7 * S  # the question was created at 10 s and expires at 20 s


def test_without_order_the_count_lies_between_the_bounds() -> None:
    log = read_mobiclique(real("sigcomm2009_mobiclique"))
    copies = log.copies()
    bounds = {order: bound(copies, order, 0) for order in ("fifo", "causal")}
    counts = set()
    for seed in range(5):
        outcome = replay_copies(copies, "unordered", {}, seed, END)
        assert outcome.delivered == outcome.copies == len(copies.node)
        assert bounds["causal"].at_least <= outcome.causal <= bounds["causal"].at_most
        assert bounds["fifo"].at_least <= outcome.fifo <= bounds["fifo"].at_most
        counts.add(outcome.causal)
    assert len(counts) > 1, "the seed orders equal instants"
    for protocol in ("causal_barrier", "hash_dag"):
        outcome = replay_copies(copies, protocol, {}, 1, END)
        assert (outcome.fifo, outcome.causal, outcome.delivered) == (0, 0, 505)


@pytest.mark.long
def test_without_order_the_exchange_decides_over_links() -> None:
    log = read_mobiclique(real("sigcomm2009_mobiclique"))
    offsets = compare_clocks(log.hops).offset_us
    meetings = meetings_seen(log.hops, offsets, Random("ends of contacts 1"))
    as_received = replay_links(log, meetings, offsets, "unordered", {"order": "received"}, 1)
    assert (as_received.fifo, as_received.causal, as_received.received) == (0, 0, 20_857)
    at_random = replay_links(log, meetings, offsets, "unordered", {}, 1)
    assert at_random.causal > at_random.received / 2


def test_meetings_are_runs_of_rows() -> None:
    rows = [(0, "a", "b"), (100, "b", "a"), (400, "a", "b"), (50, "b", "c")]
    hops = [Hop(None, one, other, at * S, "received") for at, one, other in rows]
    failed = Hop(None, "a", "c", 10 * S, "sent", accepted=False)
    meetings = meetings_seen([*hops, failed], {"c": 20 * S}, Random(1), 130 * S)
    assert [(m.a, m.b) for m in meetings] == [("a", "b"), ("a", "b"), ("b", "c")]
    for meeting, first, last in zip(meetings, (0, 400, 30), (100, 400, 30), strict=True):
        assert first - 130 <= meeting.start_us / S <= first
        assert last <= meeting.end_us / S <= last + 130


def test_over_links_every_protocol_keeps_what_it_promises(tmp_path: Path) -> None:
    log = read_event_files([write(tmp_path, CHAT)])
    rows = replay(log, compare_clocks(log.hops), seeds=2)
    by = {(row.replay, row.protocol): row for row in rows}
    assert len(by) == 3 * len(PROTOCOLS)
    for (_, protocol), row in by.items():
        if protocol in ("causal_barrier", "delta_causal", "hash_dag"):
            assert row.causal.mean == 0
            assert row.answers_above is None or row.answers_above.mean == 0
        assert row.delivered.mean <= row.received.mean
    assert by["same links", "causal_barrier"].delivered.mean >= 3


def test_rules_of_apps_sort_a_screen() -> None:
    copies = read_mobiclique(real("sigcomm2009_mobiclique")).copies()
    arrival, timestamp, lamport = (
        replay_copies(copies, rule, {}, 1, END) for rule in ("arrival", "timestamp", "lamport")
    )
    assert arrival.causal == arrival.answers_above == timestamp.causal == lamport.causal
    assert (arrival.revisions, lamport.answers_above) == (0, 0)
    assert 0 < timestamp.answers_above < arrival.answers_above, "clocks that are wrong by hours"
    assert timestamp.revisions > 0


def test_the_command_replays_and_takes_meetings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, CHAT))
    assert ",".join(PROTOCOLS) == DEFAULT_PROTOCOLS
    meetings = str(write(tmp_path, "a,b,start,end\nana,ben,10,30\nben,cem,10,30\n", "met.csv"))
    assert cli.main(["audit", path, "--seeds", "2", "--protocols", "unordered", "--meetings", meetings]) == 1
    shown = capsys.readouterr().out
    assert "Replay: same links" in shown
    assert cli.main(["audit", path, "--protocols", "unordred"]) == 2
    assert "[E015]" in capsys.readouterr().err
    assert cli.main(["audit", path, "--meetings", str(tmp_path / "none.csv")]) == 2
    assert cli.main(["audit", path, "--lifetime", "soon"]) == 2


def test_a_protocol_with_other_worlds_is_refused(tmp_path: Path) -> None:
    log = read_event_files([write(tmp_path, CHAT)])
    with pytest.raises(BadInput):
        replay_copies(log.copies(), "was", {}, 1, END)
