"""The synchronous face: scripts, notebooks, Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import precede

KEY = b"k" * 32


def test_two_members_talk_without_an_event_loop(tmp_path: Path) -> None:
    with (
        precede.open_group("picnic", "ana", key=KEY, beacon=0.05, members=["ben"]) as ana,
        precede.open_group("picnic", "ben", key=KEY, beacon=0.05, peers=[ana.address], members=["ana"]) as ben,
    ):
        ana.broadcast(b"who brings bread?")
        for message in ben.messages(timeout=20):
            assert (message.source, message.payload) == ("ana", b"who brings bread?")
            break
        garden = ben.topic("garden", order="fifo")
        ana.topic("garden", order="fifo").broadcast(b"roses")
        assert next(garden.messages(timeout=20)).payload == b"roses"
        assert ben.neighbours() == ["ana"]
        assert list(ben.waiting()) == []
        assert [message.payload for message in ben.history(source="ana")] == [b"who brings bread?"]
        assert [message.payload for message in garden.history()] == [b"roses"]
        assert ben.status()["name"] == "ben"
        assert next(ana.events(timeout=20)).member == "ben"
        with pytest.raises(TypeError, match="bytes"):
            ana.broadcast("text")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="left already"):
        ana.broadcast(b"late")
    ana.close()  # again: nothing happens


def test_messages_end_when_none_comes_in_time_and_none_is_lost() -> None:
    with precede.open_group("picnic", "ana", key=None) as ana:
        assert list(ana.messages(timeout=0.05)) == []
        for number in range(3):
            ana.broadcast(b"%d" % number)
        assert [message.payload for message in ana.messages(timeout=0.3)] == [b"0", b"1", b"2"]
        ana.broadcast(b"3")
        assert next(ana.messages()).payload == b"3"


def test_it_works_where_a_loop_is_running_already() -> None:
    """As in a notebook."""

    async def cell() -> bytes:
        group = precede.open_group("picnic", "ana", key=None)
        group.broadcast(b"one")
        try:
            return next(group.messages(timeout=20)).payload
        finally:
            group.close()

    assert asyncio.run(cell()) == b"one"


def test_a_loop_body_that_raises_gets_its_message_again(tmp_path: Path) -> None:
    store = tmp_path / "ana.db"

    def fail() -> None:
        with precede.open_group("picnic", "ana", key=None, store=store) as ana:
            ana.broadcast(b"one")
            for _ in ana.messages(timeout=20):
                raise ValueError("cannot process it")

    with pytest.raises(ValueError, match="cannot process it"):
        fail()
    with precede.open_group("picnic", "ana", key=None, store=store) as ana:
        assert next(ana.messages(timeout=20)).payload == b"one"


def test_a_group_that_cannot_be_opened_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(precede.BadInput):
        precede.open_group("picnic", "ana", key=None, bind=("203.0.113.1", 0))
    with pytest.raises(precede.BadInput):
        precede.open_group("picnic", "ana", key=b"short")
    assert threading.active_count() == before


SCRIPT = """
import precede, sys
try:
    with precede.open_group("picnic", "ana", key=None, store=sys.argv[1]) as ana:
        ana.broadcast(b"one")
        for message in ana.messages():
            print(message.payload.decode(), flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_wait_and_closes_the_member(tmp_path: Path) -> None:
    store = tmp_path / "ana.db"
    for expected in ("one", "one"):
        script = subprocess.Popen([sys.executable, "-c", SCRIPT, store], stdout=subprocess.PIPE, text=True)
        assert script.stdout is not None
        assert script.stdout.readline().strip() == expected
        time.sleep(0.2)  # it waits for the next message
        script.send_signal(signal.SIGINT)
        assert script.communicate(timeout=20)[0].strip() == "interrupted"
        assert script.returncode == 0


def test_a_script_that_forgets_to_close_ends(tmp_path: Path) -> None:
    script = "import precede; g = precede.open_group('picnic', 'ana', key=None); g.broadcast(b'one')"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
