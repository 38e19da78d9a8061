"""The store: a crash at any byte leaves a committed state, never half of one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.runtime.store import Store


def message(number: int) -> Message:
    return Message(MessageId(1, 0, number), b"payload %d" % number)


def fill(path: Path, count: int) -> None:
    """`done` and the outbox move together, one commit each; the last commits stay in the write-ahead log."""
    store = Store(path, synchronous=False)
    for number in range(1, count + 1):
        store.persist("done", number)
        store.persist(("held", number), [1, 2, 3])
        store.persist(("held", number - 1), None)
        store.deliver(message(number))
        store.commit()
    shutil.copytree(path.parent, path.parent.with_name("crashed"))
    store.close()


def test_what_was_committed_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    store.persist(("own", 3), {"x": (1, 2)})
    store.persist("gone", 1)
    store.persist("gone", None)
    place = store.deliver(message(1))
    store.deliver(message(2))
    store.commit()
    store.taken(place)
    store.remember("accepted", 7)
    store.close()
    again = Store(tmp_path / "a.db")
    assert again.saved() == {("own", 3): {"x": [1, 2]}}
    assert [m.id.number for _, m in again.undelivered()] == [2]
    assert again.remembered("accepted", 0) == 7


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    folder.mkdir()
    store = Store(folder / "a.db")
    store.persist("kept", 1)
    store.commit()
    store.persist("lost", 1)
    shutil.copytree(folder, tmp_path / "crashed")
    assert Store(tmp_path / "crashed" / "a.db").saved() == {"kept": 1}


def test_a_log_cut_at_any_byte_of_its_last_records_opens_whole(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    fill(live / "a.db", 6)
    crashed = tmp_path / "crashed"
    log = (crashed / "a.db-wal").read_bytes()
    seen = set()
    for cut in range(len(log), max(0, len(log) - 9000), -37):
        trial = tmp_path / "trial"
        shutil.rmtree(trial, ignore_errors=True)
        trial.mkdir()
        shutil.copy(crashed / "a.db", trial / "a.db")
        (trial / "a.db-wal").write_bytes(log[:cut])
        store = Store(trial / "a.db", synchronous=False)
        saved = store.saved()
        done = saved.get("done", 0)
        assert [m.id.number for _, m in store.undelivered()] == list(range(1, done + 1))
        assert [key for key in saved if key != "done"] == ([("held", done)] if done else [])
        seen.add(done)
        store.close()
    assert len(seen) > 1


def test_a_file_that_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"this is not a database, and long enough to be read as one" * 40)
    with pytest.raises(BadInput, match="cannot be used as a store"):
        Store(bad)
