"""Lessons: each shows what it promises when its recorded inputs are played, and reacts to the player."""

from __future__ import annotations

import pytest

from precede.play.export import recorded_frames
from precede.play.lessons import Progress, lessons
from precede.play.record import Input, check_record
from precede.play.session import Session
from precede.protocols import registry
from tests.play.worlds import SECOND, record_of

ORDERS = ("fifo", "causal", "delta", "multicast", "total")
BUSES = pytest.param("guidec2021", marks=pytest.mark.long)
PAPERS = ("guidec2021", "was2021", "prs1997", "drift2006", "vcube2018")


def test_there_is_a_lesson_for_each_order_and_each_paper() -> None:
    assert tuple(lessons()) == (*ORDERS, *PAPERS)
    for name in ORDERS:
        assert registry.find(lessons()[name].run().protocol).order == name
    for name in PAPERS:
        assert lessons()[name].paper.startswith(name)


@pytest.mark.parametrize("key", [*ORDERS, *(key for key in PAPERS if key != "guidec2021"), BUSES])
def test_recorded_inputs_show_what_the_lesson_promises(key: str) -> None:
    lesson = lessons()[key]
    check_record(record_of(*lesson.inputs(), end=lesson.end()), Session(lesson.run()).ordered.names)
    every = max(lesson.end() // 100, SECOND // 5)
    _, *frames = recorded_frames(lesson, lesson.run(), lesson.inputs(), lesson.end(), every)
    last = frames[-1]
    assert last["lesson"]["finished"], last["lesson"]["done"]
    assert last["sides"]["unordered"]["violations"] > 0 or key == "delta"
    assert last["sides"]["ordered"]["violations"] == 0
    assert max(frame["sides"]["ordered"]["waiting_count"] for frame in frames) > 0
    reached = [len(frame["lesson"]["done"]) for frame in frames]
    assert reached[0] < reached[-1]
    assert reached == sorted(reached)


def test_a_wait_between_two_frames_counts() -> None:
    lesson = lessons()["fifo"]
    session, progress = Session(lesson.run()), Progress(lesson)
    for item in lesson.inputs():
        session.advance_to(item.at_us)
        session.apply(item)
    session.advance_to(lesson.end())
    frame = session.frame()
    assert frame["sides"]["ordered"]["waiting_count"] == 0
    seen = progress.seen(session, frame)
    assert seen is not None
    assert seen["finished"], seen["done"]


def test_a_lesson_waits_for_the_player() -> None:
    lesson = lessons()["causal"]
    session, progress = Session(lesson.run()), Progress(lesson)
    session.advance_to(60 * SECOND)
    seen = progress.seen(session, session.frame())
    assert seen == {"done": [], "asides": [], "finished": False}
    session.apply(Input(at_us=session.now, action="crash", node="2"))
    seen = progress.seen(session, session.frame())
    assert seen is not None
    assert not seen["done"]
    assert "crashed" in seen["asides"][0]
    session.apply(Input(at_us=session.now, action="cut", node="0", peer="3"))
    seen = progress.seen(session, session.frame())
    assert seen is not None
    assert len(seen["done"]) == 1


def test_an_answer_is_said_by_a_node_that_has_delivered_the_question() -> None:
    for lesson in lessons().values():
        if not any(item.answers for item in lesson.inputs()):
            continue
        session = Session(lesson.run())
        heard: set[tuple[str, str]] = set()
        for item in lesson.inputs():
            session.advance_to(item.at_us)
            for event in session.frame()["sides"]["ordered"]["events"]:
                if event[1] == "delivered":
                    heard.add((session.ordered.names[event[2]], event[3]))
            assert item.answers is None or (item.node, item.answers) in heard, (lesson.key, item)
            session.apply(item)


def test_what_had_no_effect_does_not_count() -> None:
    lesson = lessons()["was2021"]
    session, progress = Session(lesson.run()), Progress(lesson)
    assert session.apply(Input(at_us=0, action="say", node="h0")) == [
        "h0 may not say this: the host has not joined yet."
    ]
    assert session.apply(Input(at_us=0, action="say", node="s0")) == [
        "s0 is a station: it says nothing itself."
    ]
    seen = progress.seen(session, session.frame())
    assert seen is not None
    assert not seen["done"]
    assert len(session.record().inputs) == 2
