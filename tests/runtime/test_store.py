"""The store: a crash at any byte leaves the last committed state."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import precede
from precede.core.effects import RADIO, WIRED
from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import packed
from precede.runtime.codec import Codec
from precede.runtime.driver import Driver
from precede.runtime.rows import KeptRows
from precede.runtime.store import Store

_ENTRY = registry.find("causal_barrier")
_NODE = registry.make("causal_barrier", "node", Context(1, (1, 2), {"dissemination": "epidemic"}, Random(1)))
CODEC = Codec(*registry.wire_types(_ENTRY, _NODE, "epidemic"))


JOURNAL = "a.db-journalled"


def message(number: int) -> Message:
    return Message(MessageId(1, 0, number), b"payload %d" % number)


def small_pages(path: Path) -> None:
    """Make a database with small pages, so that a cut at every byte of several records can be tried."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size=512")
    database.execute("CREATE TABLE first (number)")
    database.close()


def fill(path: Path, count: int) -> None:
    """Commit `count` times: a value, an outbox message, a driver's number and a log block in each commit."""
    small_pages(path)
    store = Store(path, synchronous=False)
    for number in range(1, count + 1):
        store.persist("done", number)
        store.persist(("held", number), [1, 2, 3])
        store.persist(("held", number - 1), None)
        store.deliver(message(number))
        store.remember("accepted", number)
        store.log(b"row %d" % number)
        store.commit()
    shutil.copytree(path.parent, path.parent.with_name("crashed"))
    store.close()


def cuts(journal: bytes, every: int, least: int, most: int) -> Iterator[bytes]:
    """The journal, shortened by `least` to `most` bytes, down to its beginning."""
    for cut in range(max(-1, len(journal) - least), max(-1, len(journal) - most), -every):
        yield journal[:cut]


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Path]:
    """A folder, in memory if possible: some ten thousand stores are opened in it."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path / "trial"
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def crashed_with(folder: Path, journal: bytes, trial: Path) -> Path:
    """A copy of the store with this journal."""
    trial.mkdir(exist_ok=True)
    for old in trial.iterdir():
        old.unlink()
    for name in ("a.db", "a.db-wal"):
        shutil.copyfile(folder / name, trial / name)
    (trial / JOURNAL).write_bytes(journal)
    return trial / "a.db"


def test_committed_state_is_read_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    store.persist(("own", 3), {"x": (1, 2)})
    store.persist("gone", 1)
    store.persist("gone", None)
    place = store.deliver(message(1)).place
    store.deliver(message(2))
    store.commit()
    store.acknowledge(place)
    store.remember("accepted", 7)
    store.close()
    again = Store(tmp_path / "a.db")
    assert again.saved() == {("own", 3): {"x": [1, 2]}}
    assert [m.id.number for _, m, *_ in again.unacknowledged()] == [2]
    assert again.remembered("accepted", 0) == 7


def test_uncommitted_state_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    folder.mkdir()
    store = Store(folder / "a.db")
    store.persist("kept", 1)
    store.commit()
    store.persist("lost", 1)
    shutil.copytree(folder, tmp_path / "crashed")
    assert Store(tmp_path / "crashed" / "a.db").saved() == {"kept": 1}


EXTENTS = [
    pytest.param(1, 0, 400, id="every byte of the last records"),
    pytest.param(17, 0, 4_000, id="here and there in all of them"),
    pytest.param(1, 0, 4_000, id="every byte of all of them", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("every", "least", "most"), EXTENTS)
def test_a_journal_cut_at_any_byte_gives_a_committed_state(
    every: int, least: int, most: int, tmp_path: Path, trial: Path
) -> None:
    fill(tmp_path / "live" / "a.db", 12)
    crashed = tmp_path / "crashed"
    seen = set()
    for journal in cuts((crashed / JOURNAL).read_bytes(), every, least, most):
        store = Store(crashed_with(crashed, journal, trial), synchronous=False)
        saved = store.saved()
        done = saved.get("done", 0)
        assert [m.id.number for _, m, *_ in store.unacknowledged()] == list(range(1, done + 1))
        assert [key for key in saved if key != "done"] == ([("held", done)] if done else [])
        assert store.remembered("accepted", 0) == done
        assert [rows for _, rows in store.logged()] == [b"row %d" % number for number in range(1, done + 1)]
        seen.add(done)
        store.close()
    assert len(seen) >= (2 if every == 1 else 8)


def test_a_changed_byte_of_the_journal_ends_it(tmp_path: Path, trial: Path) -> None:
    fill(tmp_path / "live" / "a.db", 12)
    crashed = tmp_path / "crashed"
    journal = (crashed / JOURNAL).read_bytes()
    seen = set()
    for place in range(0, len(journal), 23):
        changed = bytearray(journal)
        changed[place] ^= 0x10
        store = Store(crashed_with(crashed, bytes(changed), trial), synchronous=False)
        done = store.saved().get("done", 0)
        assert [m.id.number for _, m, *_ in store.unacknowledged()] == list(range(1, done + 1))
        seen.add(done)
        store.close()
    assert len(seen) >= 8


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_between_any_two_commits_leaves_the_committed_state(
    seed: int, trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is short, so that the tables are written often and older records stay behind newer ones."""
    monkeypatch.setattr("precede.runtime.store._MOST_JOURNAL_BYTES", 700)
    random = Random(seed)
    live = trial / "live"
    store = Store(live / "a.db", synchronous=False)
    committed: dict[Any, Any] = {}
    changed: dict[Any, Any] = {}
    for step in range(150):
        key = ("key", random.randrange(6))
        changed[key] = None if random.random() < 0.3 else bytes(random.randrange(120))
        store.persist(key, changed[key])
        if random.random() < 0.1:
            store.saved()  # writes to the tables, in a transaction that is still open
        if random.random() < 0.6:
            store.commit()
            committed |= changed
            changed.clear()
        if random.random() < 0.2:
            crashed = trial / f"crashed {step}"
            shutil.copytree(live, crashed)
            store.abandon()
            store = Store(crashed / "a.db", synchronous=False)
            live = crashed
            assert store.saved() == {key: value for key, value in committed.items() if value is not None}
            changed.clear()
    store.close()


class Nowhere:
    """Links to nobody: every packet counts as sent."""

    def send(self, data: bytes, to: int, key: object = None) -> int:
        return 0

    def send_together(self, packets: object, to: int) -> int:
        return 0

    def cancel(self, key: object) -> None:
        """Do nothing."""


def alone(path: Path) -> tuple[Driver, list[tuple[int, int]]]:
    """A causal node on a store, and the list of its deliveries: source and number."""
    options = {"durable": True, "dissemination": "epidemic"}
    handed: list[tuple[int, int]] = []
    driver = Driver(
        lambda life: registry.make("causal_barrier", "node", Context(1, (1, 2), options, Random(1), life)),
        CODEC,
        Store(path, synchronous=False),
        rows=KeptRows(str),
    )
    driver.outside = {RADIO: Nowhere(), WIRED: Nowhere()}
    driver.on_deliver = lambda kept, above: handed.append((kept.message.id.source, kept.message.id.number))
    return driver, handed


def from_the_other(number: int) -> bytes:
    """The answer of node 2 to the message of node 1 with this number."""
    barrier = ((1, number), (2, number - 1)) if number > 1 else ((1, number),)
    envelope = Envelope(Message(MessageId(2, 0, number), b"theirs"), barrier, None, None, 0, 0)
    return CODEC.encode(packed((envelope,)))


@pytest.mark.parametrize(
    ("every", "least", "most"),
    [
        pytest.param(37, 0, 9_000),
        pytest.param(1, 0, 9_000, marks=pytest.mark.long),
    ],
)
def test_a_node_on_a_cut_journal_continues_in_order(
    every: int, least: int, most: int, tmp_path: Path, trial: Path
) -> None:
    """It delivers no message twice, its own messages in order, and uses no number twice."""

    async def run() -> None:
        live = tmp_path / "live" / "a.db"
        small_pages(live)
        driver, handed = alone(live)
        driver.start()
        for number in range(1, 7):
            driver.broadcast(b"ours")
            driver.packet(from_the_other(number), 2)
            await asyncio.sleep(0)
        assert handed == [(source, number) for number in range(1, 7) for source in (1, 2)]
        shutil.copytree(live.parent, tmp_path / "crashed")
        driver.stop()
        crashed = tmp_path / "crashed"
        lengths = set()
        for journal in cuts((crashed / JOURNAL).read_bytes(), every, least, most):
            again, taken = alone(crashed_with(crashed, journal, trial))
            again.start()
            await asyncio.sleep(0)
            assert taken == handed[: len(taken)]  # what was delivered, in the order in which it was
            own = [number for source, number in taken if source == 1]
            again.broadcast(b"the next")
            await asyncio.sleep(0)
            assert taken[-1] == (1, (own[-1] if own else 0) + 1)
            again.packet(from_the_other(6), 2)
            await asyncio.sleep(0)
            assert len(set(taken)) == len(taken)
            lengths.add(len(taken))
            again.stop()
            again.store.close()
        assert len(lengths) > 1

    asyncio.run(run())


def test_a_file_that_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"this is not a database, and long enough to be read as one" * 40)
    with pytest.raises(BadInput, match="cannot be used as a store"):
        Store(bad)


def test_only_its_owner_can_read_a_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    store.remember("x", 1)
    store.commit()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    store.close()


def test_a_store_is_refused_while_another_process_uses_it(tmp_path: Path) -> None:
    """Otherwise both processes would give their next message the same number."""
    store = Store(tmp_path / "a.db")
    with pytest.raises(BadInput, match=r"a\.db: is in use by another process"):
        Store(tmp_path / "a.db")
    store.close()
    Store(tmp_path / "a.db").close()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"name": "ben"}, "another member than 'ben'"),
        ({"group": "h"}, "another group than 'h'"),
        ({"order": "fifo"}, "another protocol than 'fifo over epidemic'"),
        ({"order": "delta", "lifetime": "5s"}, "another protocol"),
        ({"order": "total", "members": ["ana", "ben"]}, "another protocol"),
    ],
)
def test_a_store_belongs_to_one_member_group_and_order(
    tmp_path: Path, other: dict[str, Any], said: str
) -> None:
    given: dict[str, Any] = {"group": "g", "name": "ana", "order": "causal"}

    async def run(how: dict[str, Any]) -> None:
        named = {**given, **how}
        first = (named.pop("group"), named.pop("name"))
        async with precede.join(*first, key=bytes(32), store=tmp_path / "a.db", **named) as member:
            await member.broadcast(b"x")

    asyncio.run(run({}))
    with pytest.raises(BadInput, match=said):
        asyncio.run(run(other))
    asyncio.run(run({}))
