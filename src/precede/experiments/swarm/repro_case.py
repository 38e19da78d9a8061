"""A misordered world as data for the tests of an app: what one reader got, when, and what must hold.

The data name no library, so that a test in any language can read them; `TESTS` has such a test in three.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa

from precede.core.instants import SECOND
from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.repro import KEEPS_ORDER, Repro

TESTS: Final[dict[str, list[str]]] = {
    "python": [
        "def test_no_answer_before_or_above_its_question(app, case):",
        "    for step in case['received']:",
        "        app.set_clock(step['reader_clock_s'])",
        "        app.receive(step['id'], step['author'], step['author_clock_s'])",
        "        shown = app.screen()",
        "        for question, answer in case['question_above_answer']:",
        "            if answer in shown:",
        "                assert question in shown and shown.index(question) < shown.index(answer)",
    ],
    "kotlin": [
        "@Test fun noAnswerBeforeOrAboveItsQuestion() {",
        "    for (step in case.received) {",
        "        app.setClock(step.readerClockS)",
        "        app.receive(step.id, step.author, step.authorClockS)",
        "        val shown = app.screen()",
        "        for ((question, answer) in case.questionAboveAnswer) if (answer in shown)",
        "            assertTrue(question in shown && shown.indexOf(question) < shown.indexOf(answer))",
        "    }",
        "}",
    ],
    "swift": [
        "func testNoAnswerBeforeOrAboveItsQuestion() throws {",
        "    for step in testCase.received {",
        "        app.setClock(step.readerClockS)",
        "        app.receive(step.id, author: step.author, sent: step.authorClockS)",
        "        let shown = app.screen()",
        "        for (question, answer) in testCase.questionAboveAnswer where shown.contains(answer) {",
        "            let above = try XCTUnwrap(shown.firstIndex(of: question))",
        "            XCTAssertLessThan(above, try XCTUnwrap(shown.firstIndex(of: answer)))",
        "        }",
        "    }",
        "}",
    ],
}


class Shown(NamedTuple):
    """A message that a node shows: at which world time and reading of the node's clock."""

    node: str
    message: str
    at_s: float
    clock_s: float


class Scene(NamedTuple):
    """What happened in a small world: who wrote which message, who showed it when, and the final screens."""

    nodes: list[str]
    written: list[Shown]
    received: list[Shown]
    shown: list[Shown]
    screens: dict[str, list[str]]


def scene_of(events: pa.Table) -> Scene:
    """Read a scene from the rows of a log."""
    scene = Scene([], [], [], [], {})
    above: dict[str, str] = {}
    for row in events_of(events, "started", "broadcast", "received", "delivered", "observed"):
        node = row["node"]
        if row["kind"] == "started":
            scene.nodes.append(node)
            scene.screens[node] = []
            continue
        message = f"{row['message_source']}:{row['message_number']}"
        event = Shown(node, message, row["at_us"] / SECOND, row["clock_us"] / SECOND)
        if row["kind"] == "broadcast":
            scene.written.append(event)
        if row["kind"] in ("broadcast", "received"):
            scene.received.append(event)
        elif row["kind"] == "observed":
            above[node] = message
        else:
            screen = scene.screens[node]
            screen.insert(screen.index(above.pop(node)) if node in above else len(screen), message)
            scene.shown.append(event)
    return scene


def case_of(repro: Repro) -> dict[str, Any]:
    """Return the data of a test: the messages as the misordering reader got them, and what must hold."""
    wrong = repro.first()
    scene, ordered = scene_of(repro.rule.events), scene_of(repro.ordered.events)
    written = {event.message: event for event in scene.written}
    question, answer = sorted((wrong.message, wrong.other or ""), key=lambda message: written[message].at_s)
    relation = "shows {} above {}" if repro.misorder == "answer_above" else "showed {} before {}"
    return {
        "rule": repro.rule.run.protocol,
        "misorder": repro.misorder,
        "says": f"{wrong.node} {relation.format(answer, question)}, but {question} -> {answer}.",
        "reader": wrong.node,
        "received": [
            {
                "id": event.message,
                "author": written[event.message].node,
                "author_clock_s": written[event.message].clock_s,
                "reader_clock_s": event.clock_s,
            }
            for event in scene.received
            if event.node == wrong.node
        ],
        "question_above_answer": [[question, answer]],
        "shown_by_the_rule": scene.screens[wrong.node],
        f"shown_by_{KEEPS_ORDER}": ordered.screens[wrong.node],
        "tests": TESTS,
    }
