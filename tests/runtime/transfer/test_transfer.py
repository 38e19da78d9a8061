"""State transfer: a member that missed what nobody carries any more gets history, or a snapshot and its cut."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import precede
from benchmarks.catch_up import run
from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context, round_trip
from precede.protocols import registry
from precede.protocols.layered import node as layered
from precede.runtime.codec import Codec
from precede.runtime.history.kept import Kept
from precede.runtime.links.authorship import public_of
from precede.runtime.store import Store
from precede.runtime.transfer import giver as giver_module
from precede.runtime.transfer import packets
from precede.runtime.transfer.giver import MOST_ROWS_PER_STEP, Giver
from precede.runtime.transfer.packets import (
    MOST_CHUNK_BYTES,
    HistoryAsk,
    HistoryPart,
    SnapshotAsk,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotOffer,
    decode,
    encode,
)
from precede.runtime.transfer.snapshot import digest_of
from precede.runtime.transfer.snapshot_wants import SnapshotWants
from precede.runtime.transfer.spool import Source, Spool
from tests.patience import patient

KEY = bytes(range(32))
SEEDS = {name: bytes([place + 1]) * 32 for place, name in enumerate(("ana", "ben", "cleo"))}
ROSTER = {name: public_of(seed) for name, seed in SEEDS.items()}


class App:
    """An application whose state is the list of payloads. `restored` are the snapshots that it got."""

    def __init__(self) -> None:
        self.state: list[bytes] = []
        self.restored: list[precede.Snapshot] = []

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.state)

    def restore(self, snapshot: precede.Snapshot) -> None:
        self.restored.append(snapshot)
        self.state = msgspec.msgpack.decode(snapshot.state)

    async def run(self, group: precede.Group) -> None:
        async for message in group:
            self.state.append(message.payload)


def causal_node(node: int) -> Any:
    options = {"durable": True, "dissemination": "gossip"}
    context: Context[Any] = Context(node, (0, 1), options, Random(1), 0)
    return registry.make("causal_barrier", "node", context)


def signed(name: str) -> dict[str, Any]:
    return {"key": KEY, "identity": SEEDS[name], "roster": ROSTER, "beacon": 0.2}


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    for _ in range(round(seconds / 0.05)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


async def broadcast(group: precede.Group, payload: bytes) -> None:
    while True:
        try:
            return await group.broadcast(payload)
        except precede.NotYet:
            await asyncio.sleep(0.05)


def in_time(main: Awaitable[None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(main, patient(60))

    asyncio.run(limited())


# -- history ---------------------------------------------------------------------------------------------------


def test_a_latecomer_of_a_causal_group_gets_the_history_of_another_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also messages of an author that is gone: their signatures are checked as always."""
    monkeypatch.setattr(layered, "PATIENCE", 500_000)
    sent = [b"%d" % number for number in range(300)]

    async def main() -> None:
        ana = precede.join("picnic", "ana", **signed("ana"), options={"cache": 20}, store=tmp_path / "ana.db")
        async with ana:
            ben = precede.join(
                "picnic",
                "ben",
                **signed("ben"),
                options={"cache": 20},
                store=tmp_path / "ben.db",
                peers=[ana.address],
            )
            await ben.__aenter__()
            await until(lambda: bool(ana.neighbours()))
            for payload in sent:
                await ana.broadcast(payload)
                await asyncio.sleep(0.001)
            await until(lambda: ben.status()["untaken"] == 300)
        await ben.broadcast(b"ben")
        cleo = precede.join("picnic", "cleo", **signed("cleo"), peers=[ben.address])
        async with cleo:
            await until(lambda: cleo.status()["untaken"] == 301)
            assert [message.payload for message in cleo.history()] == [*sent, b"ben"]
            assert cleo.status()["dropped"].get("forged", 0) == 0
        await ben.close()

    in_time(main())


# -- snapshots -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [True, False])
def test_a_latecomer_of_a_total_group_goes_on_from_a_snapshot_without_a_gap_or_a_double(
    tmp_path: Path, stored: bool
) -> None:
    async def main() -> None:
        one, two = App(), App()
        callbacks = {"on_snapshot": one.snapshot, "on_restore": one.restore}
        alone = {"founding": "alone", "retention": "1s"}
        async with precede.join(
            "picnic", "ana", **signed("ana"), order="total", options=alone, **callbacks
        ) as ana:
            taking = [asyncio.create_task(one.run(ana))]
            for number in range(100):
                await broadcast(ana, b"%d" % number)
            ben = precede.join(
                "picnic",
                "ben",
                **signed("ben"),
                order="total",
                members=["ana"],
                peers=[ana.address],
                store=tmp_path / "ben.db" if stored else None,
                on_snapshot=two.snapshot,
                on_restore=two.restore,
                snapshot_from=["ana"],
            )
            async with ben:
                taking.append(asyncio.create_task(two.run(ben)))
                number = 100
                while not two.restored or number % 50:
                    await broadcast(ana, b"%d" % number)
                    number += 1
                    await asyncio.sleep(0.01)
                await broadcast(ben, b"ben")
                await until(lambda: one.state == two.state and one.state[-1] == b"ben")
                assert one.state[:-1] == [b"%d" % each for each in range(number)]
                (snapshot,) = two.restored
                assert (snapshot.source, snapshot.signed) == ("ana", True)
                assert len(list(ben.history())) < len(two.state), "the rest is in the snapshot"
        assert not (tmp_path / "ben.db-snapshot").exists()

    in_time(main())


def test_a_latecomer_of_a_causal_group_can_go_on_from_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layered, "PATIENCE", 500_000)

    async def main() -> None:
        one, two = App(), App()
        callbacks = {"on_snapshot": one.snapshot, "on_restore": one.restore}
        async with precede.join("picnic", "ana", **signed("ana"), options={"cache": 10}, **callbacks) as ana:
            taking = [asyncio.create_task(one.run(ana))]
            for number in range(100):
                await ana.broadcast(b"%d" % number)
            back = {"on_snapshot": two.snapshot, "on_restore": two.restore}
            path = tmp_path / "ben.db"
            async with precede.join(
                "picnic", "ben", **signed("ben"), store=path, peers=[ana.address], **back
            ) as ben:
                taking.append(asyncio.create_task(two.run(ben)))
                await until(lambda: len(two.restored) == 1)
                await ana.broadcast(b"after")
                await until(lambda: one.state == two.state and one.state[-1] == b"after")
            back = {"on_snapshot": two.snapshot, "on_restore": two.restore}
            async with precede.join(
                "picnic", "ben", **signed("ben"), store=path, peers=[ana.address], **back
            ) as ben:
                taking.append(asyncio.create_task(two.run(ben)))
                await ben.broadcast(b"again")
                await until(lambda: one.state == two.state and one.state[-1] == b"again")
                assert len(two.restored) == 1

    in_time(main())


def test_a_snapshot_that_was_complete_before_a_crash_is_restored_before_the_first_message(
    tmp_path: Path,
) -> None:
    """The application gets it before it can take a message; and not again after the commit."""
    path = tmp_path / "ben.db"
    state = msgspec.msgpack.encode([b"1", b"2"])
    number = 77

    async def main() -> None:
        app = App()
        callbacks = {"on_snapshot": app.snapshot, "on_restore": app.restore}
        ana = precede.join(
            "picnic", "ana", **signed("ana"), **{"on_snapshot": app.snapshot, "on_restore": print}
        )
        async with ana:
            await ana.broadcast(b"1")
            await ana.broadcast(b"2")
            cut = ana.driver.node.cut()
            assert cut is not None
        spool = Spool(tmp_path / "ben.db-snapshot")
        spool.begin(Source(ana.id, SnapshotOffer(number, len(state), digest_of(state), cut, b"")))
        spool.add(state)
        spool.close()
        for _ in range(2):
            async with precede.join("picnic", "ben", **signed("ben"), store=path, **callbacks) as ben:
                assert app.state == [b"1", b"2"]
                assert len(app.restored) == 1
                assert ben.status()["untaken"] == 0
                assert ben.driver.node.delivered_tops() == [(ana.id, ana.status()["incarnation"], 2)]
            spool = Spool(tmp_path / "ben.db-snapshot")
            spool.begin(Source(ana.id, SnapshotOffer(number, len(state), digest_of(state), cut, b"")))
            spool.add(state)  # as if the crash had come between the commit and the deletion
            spool.close()

    in_time(main())


def test_a_spool_goes_on_after_a_crash_and_a_damaged_one_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a-snapshot"
    offer = SnapshotOffer(5, 10, digest_of(bytes(range(10))), b"cut", b"")
    spool = Spool(path)
    spool.begin(Source(7, offer))
    spool.add(bytes(range(4)))
    spool.close()
    again = Spool(path)
    assert (again.source, again.size, again.is_complete) == (Source(7, offer), 4, False)
    again.add(bytes(range(4, 10)))
    assert again.is_complete
    assert again.state() == bytes(range(10))
    again.close()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert Spool(path).state() is None
    path.write_bytes(b"\0\0\0\5junk")
    assert Spool(path).source is None
    assert not path.exists()


class Checks:
    """Decides as it is told."""

    signed = fits = True

    def is_trusted(self, giver: int) -> bool:
        return giver != 9

    def is_signed(self, giver: int, offer: SnapshotOffer) -> bool:
        return self.signed

    def can_adopt(self, cut: bytes) -> bool:
        return self.fits


def test_a_member_that_has_no_more_than_the_asker_says_so_at_once(tmp_path: Path) -> None:
    """And one that has more reads its history in pages, from the place that is asked for."""
    store = Store(tmp_path / "a.db", synchronous=False, retention=precede.Retention())
    ana = causal_node(0)
    for _ in range(1_000):
        envelope, _ = ana.ordering.stamp(bytes(50), 0, None, None)
        store.deliver(envelope.message, 1, envelope)
    sent: list[Any] = []
    codec = Codec(*registry.wire_types(registry.find("causal_barrier"), ana, "gossip"))
    giver = Giver(
        ana, store.history, codec.encode, lambda packet, to: sent.append(packet), None, lambda offer: b""
    )
    giver.asked_for_history(HistoryAsk(0, ((0, 0, 1_000),)), 1)
    assert sent == [HistoryPart(0, 0, False, True, ())]
    sent.clear()
    tops, got = ((0, 0, 100),), []
    while not sent or not sent[-1].ends:
        after = sent[-1].last if sent else 0
        giver.asked_for_history(HistoryAsk(after, tops), 1)
        giver.step()
    for part in sent:
        assert len(encode(part)) < 20_000
        got += [
            message.message.id.number for packet in part.packets for message in codec.decode(packet).envelopes
        ]
    assert got == list(range(101, 1_001))
    assert [part.after for part in sent[1:]] == [part.last for part in sent[:-1]]
    store.close()


class Pages:
    """A history of a million messages that the asker has: it must be read, and nothing is sent."""

    def __init__(self) -> None:
        self.rows = 0

    def read(self, after: int, most: int = -1, source: int | None = None) -> list[Kept]:
        self.rows += most
        message = Message(MessageId(0, 0, 1), b"")
        return [Kept(after + n + 1, message, 0) for n in range(most)] if after < 1_000_000 else []


def test_requests_for_history_cost_a_bounded_time_and_everybody_gets_a_turn() -> None:
    """One member that asked again and again kept others busy with reading, for 0.1 s a request."""
    ana = causal_node(0)
    ana.ordering.stamp(b"", 0, None, None)
    ana.ordering.stamp(b"", 0, None, None)
    history: Any = Pages()
    sent: list[int] = []
    giver = Giver(ana, lambda: history, lambda packet: b"", lambda packet, to: sent.append(to), None, bytes)
    for _ in range(50):
        giver.asked_for_history(HistoryAsk(0, ((0, 0, 1),)), 1)
    assert history.rows == MOST_ROWS_PER_STEP
    sent.clear()
    giver.asked_for_history(HistoryAsk(0, ((0, 0, 1),)), 2)
    for peer in (1, 2):
        giver.step()
        giver.asked_for_history(HistoryAsk(0, ((0, 0, 1),)), 1)
        assert {*sent} == {peer}
        sent.clear()
    assert history.rows == 3 * MOST_ROWS_PER_STEP


def test_one_member_alone_does_not_drive_a_snapshot_out_that_another_fetches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(giver_module, "_REUSED_S", -1.0)
    sent: list[Any] = []
    giver = Giver(
        *(causal_node(0), lambda: None, lambda packet: b"", lambda packet, to: sent.append((to, packet))),  # type: ignore[arg-type, return-value]
        *(lambda: bytes(3), lambda offer: b""),
    )
    giver.asked_for_snapshot(SnapshotAsk(0), 1)
    giver.make()
    offer = sent[-1][1]
    for _ in range(5):
        giver.asked_for_snapshot(SnapshotAsk(0), 2)
        giver.make()
        giver.asked_for_chunks(SnapshotFetch(sent[-1][1].number, 0), 2)
    giver.asked_for_chunks(SnapshotFetch(offer.number, 0), 1)
    assert sent[-1] == (1, SnapshotChunk(offer.number, 0, False, bytes(3)))


def test_an_offer_counts_only_if_it_was_asked_for_trusted_signed_and_fits() -> None:
    checks, refused, sent = Checks(), [], []
    wants = SnapshotWants(Spool(None), checks, lambda packet, to: sent.append((packet, to)), refused.append)
    offer = SnapshotOffer(5, 3, digest_of(b"abc"), b"", b"")
    wants.offered(offer, 1)
    assert wants.spool.source is None, "nobody asked for it"
    wants.step(True, [9, 1])
    assert [to for _, to in sent] == [1], "9 is not trusted"
    checks.signed = False
    wants.offered(offer, 1)
    wants.offered(offer, 1)
    assert refused == ["snapshot_forged"]
    wants._asked, checks.signed, checks.fits = 1, True, False
    wants.offered(offer, 1)
    assert refused == ["snapshot_forged", "snapshot_unfit"]
    wants._asked, checks.fits = 1, True
    wants.offered(offer, 1)
    assert wants.spool.source == Source(1, offer)
    wants.chunk(SnapshotChunk(5, 0, False, b"a"), 2)
    wants.chunk(SnapshotChunk(6, 0, False, b"a"), 1)
    wants.chunk(SnapshotChunk(5, 1, False, b"a"), 1)
    assert wants.spool.size == 0, "another sender, another snapshot, another place"
    for data in (b"abcd", b"ab", b""):
        wants.chunk(SnapshotChunk(5, 0, False, data), 1)
        assert refused[-1] == "snapshot_forged", "more bytes than were offered, or byte by byte"
        assert wants.spool.source is None
        wants._asked = 1
        wants.offered(offer, 1)
        refused.clear()
    whole = SnapshotOffer(6, MOST_CHUNK_BYTES + 3, digest_of(b""), b"", b"")
    wants.drop("snapshot_forged")
    wants._asked = 1
    wants.offered(whole, 1)
    wants.chunk(SnapshotChunk(6, 0, False, bytes(MOST_CHUNK_BYTES)), 1)
    assert sent[-1] == (SnapshotFetch(6, MOST_CHUNK_BYTES), 1)
    wants.chunk(SnapshotChunk(6, MOST_CHUNK_BYTES, False, b"end"), 1)
    assert wants.spool.is_complete


# -- bytes of others -------------------------------------------------------------------------------------------


def test_packets_decode_to_what_was_encoded_and_nothing_else_raises() -> None:
    ask = HistoryAsk(7, ((1, 2, 3),))
    assert decode(encode(ask)) == ask
    part = HistoryPart(7, 9, True, False, (b"\1\0x",))
    assert decode(encode(part)) == part
    generator = Random(1)
    whole = encode(SnapshotOffer(5, 10, bytes(32), b"cut", bytes(64)))
    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(2, len(damaged))] = generator.randrange(256)
        decode(bytes(damaged[: generator.randrange(3, len(damaged) + 1)]))
    for absurd in (
        (-1, ()),
        (1 << 41, ()),
        (0, ((1, 1 << 15, 1),)),
        (0, ((1, 0, 1),) * (packets.MOST_TOPS + 1)),
    ):
        assert decode(bytes((1, packets.FIRST_KIND)) + msgspec.msgpack.encode(absurd)) is None
    assert decode(b"\1\xff\x90") is None
    assert decode(b"\2\xf0\x90") is None


def test_a_transfer_in_a_frame_for_everybody_does_not_count() -> None:
    async def main() -> None:
        async with precede.join("picnic", "ana", key=KEY) as ana:
            ana._on_packet(encode(HistoryAsk(0, ())), 1, 0, True)
            ana._on_packet(b"\1\xf0garbage", 1, 0, False)
            assert ana.status()["dropped"] == {"transfer": 2}
            ana._on_packet(encode(SnapshotFetch(3, 0)), 1, 0, False)
            ana._on_packet(encode(SnapshotChunk(3, 0, False, b"x")), 1, 0, False)

    in_time(main())


# -- the node --------------------------------------------------------------------------------------------------


def test_a_causal_node_goes_on_from_a_cut_also_after_a_restart() -> None:
    ana, ben = causal_node(0), causal_node(1)
    envelopes = [ana.ordering.stamp(b"%d" % number, 0, None, None)[0] for number in range(3)]
    cut = ana.cut()
    last = ana.ordering.stamp(b"last", 0, None, None)[0]
    effects: list[Any] = []
    ben.ordering.arrive((last,), 0, effects)
    assert ben.waiting()
    assert ben.can_adopt(cut, 1)
    effects += ben.adopt(cut, 1)
    assert [effect.message.payload for effect in effects if type(effect).__name__ == "Deliver"] == [b"last"]
    assert ben.ordering.stamp(b"", 2, None, None)[0].stamp == ((0, 4),)
    assert not ben.waiting()
    saved: dict[Any, Any] = {}
    for effect in effects:
        if type(effect).__name__ == "Persist":
            saved[effect.key] = effect.value
    saved = {key: value for key, value in round_trip(saved).items() if value is not None}
    again = causal_node(1)
    again.start(3, saved)
    assert again.delivered_tops() == [(0, 0, 4)]
    assert again.ordering.stamp(b"", 4, None, None)[0].stamp == ((0, 4),)
    assert not ana.can_adopt(cut, 5), "it has delivered more"
    assert not ben.can_adopt(b"junk", 5)
    assert envelopes[0].message == Message(MessageId(0, 0, 1), b"0")


def test_what_join_refuses() -> None:
    app = App()
    both = {"on_snapshot": app.snapshot, "on_restore": app.restore}
    for setting, text in (
        ({"on_restore": app.restore}, "go together"),
        ({**both, "order": "fifo"}, "needs order="),
        ({"snapshot_from": ["ana"]}, "needs on_restore"),
        ({**both, "snapshot_from": "ana"}, "expected a list of names"),
    ):
        with pytest.raises(BadInput, match=text):
            precede.join("picnic", "ben", key=None, **setting)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("order", "messages"),
    [
        ("causal", 300),
        pytest.param("causal", 3_000, marks=pytest.mark.long),
        pytest.param("total", 3_000, marks=pytest.mark.long),
    ],
)
def test_a_member_that_was_away_catches_up_over_loss_though_it_is_killed_twice(
    order: str, messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(Path(precede.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    result = run(order, messages, 0.2, 400_000, 240.0)
    assert result["same_state"]
    assert result["restored_from_snapshot"] == (order == "total")
    assert result["peak_rss_mb"] < result["others_rss_mb"] + 50
