"""A member that tells two stories leaves a proof; an honest member is never framed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from precede.cli import main
from precede.core.effects import Accept, Effect
from precede.core.identity import MessageId
from precede.core.messages import Message, Written
from precede.protocols.drift2006.packets import DriftPacket, Flood, Piggyback
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import packed
from precede.runtime.evidence.chain import MOST_LINKS
from precede.runtime.evidence.files import MOST_OF_AN_AUTHOR
from precede.runtime.evidence.headers import LINK_BYTES, NONCE_BYTES, SIGNATURE_BYTES, split
from precede.runtime.evidence.history import MOST_HEADERS, Contradiction
from precede.runtime.evidence.proofs import Equivocation, SignedHeader
from precede.runtime.names import node_id
from precede.runtime.no_store import NoStore
from precede.runtime.store import Store
from tests.runtime.insider import Insider
from tests.runtime.test_authorship import KEY, NOW, ROSTER, SEEDS, authors, encoded, member, when_taken
from tests.runtime.test_group import introduce, take
from tests.runtime.test_removal import until

ANA, BEN, MAL = map(node_id, ("ana", "ben", "mal"))


class Writer:
    """An author that signs what it likes; `write` signs a message that follows the one written last."""

    def __init__(self, name: str, store: Store | NoStore | None = None) -> None:
        self.name = name
        self.authors = authors(name)
        self.authors.continue_chain(store or NoStore())

    def write(self, number: int, payload: bytes = b"", incarnation: int = 0) -> Envelope:
        id = MessageId(node_id(self.name), incarnation, number)
        return self.sign(Envelope(Message(id, payload), (), None, None, 16, 0, NOW))

    def sign(self, envelope: Envelope) -> Envelope:
        effects: list[Effect] = [Accept(envelope.message, content=envelope)]
        self.authors.accept(effects)
        packet = packed([envelope])
        self.authors.sign(packet)
        return packet.envelopes[0]


class Reader:
    """A member that checks messages and keeps the contradictions."""

    def __init__(self) -> None:
        self.found: list[Contradiction] = []
        self.authors = authors("cem")
        self.authors.on_contradiction = lambda public, contradiction: self.found.append(contradiction)

    def read(self, *envelopes: Envelope) -> list[str]:
        for envelope in envelopes:
            assert self.authors.check(list(packed([envelope]).written())) is None
        return [kind for kind, _, _ in self.found]

    def evidence(self, author: str) -> Equivocation:
        kind, first, second = self.found[0]
        return Equivocation(kind, "picnic", author, ROSTER[author], first, second)


def twins(name: str = "mal") -> tuple[Writer, Writer, Envelope]:
    """Two copies of one author that share its first message."""
    one, two = Writer(name), Writer(name)
    two.authors = authors(name)
    two.authors._chain._nonce = one.authors._chain._nonce
    first = one.write(1, b"first")
    two.write(1, b"first")
    return one, two, first


def test_two_messages_with_one_id_are_a_proof() -> None:
    one, two, first = twins()
    reader = Reader()
    assert reader.read(first, one.write(2, b"yes"), two.write(2, b"no")) == ["same_id"]
    evidence = reader.evidence("mal")
    assert evidence.is_proof
    assert evidence.holds(ROSTER["mal"])
    assert evidence.text == "mal signed two different messages with one id (number 2 of incarnation 0)"
    assert not evidence.holds(ROSTER["ana"])
    again = Equivocation.from_json(evidence.to_json())
    assert again == evidence


def test_versions_that_never_meet_are_betrayed_by_the_next_message() -> None:
    """Cem gets the second version of number 2, and number 3, which follows the first version."""
    one, two, first = twins()
    one.write(2, b"yes")
    reader = Reader()
    assert reader.read(first, two.write(2, b"no"), one.write(3, b"as I said")) == ["branch"]
    assert reader.evidence("mal").holds(ROSTER["mal"])


def test_messages_out_of_order_and_skipped_numbers_betray_a_branch_too() -> None:
    one, two, first = twins()
    one.write(2, b"yes")
    third, other = one.write(3), two.write(2, b"no")
    assert Reader().read(third, other, first) == ["branch"]
    one, two, first = twins()
    assert Reader().read(first, one.write(2, b"yes"), two.write(7, b"no")) == ["branch"]


def test_other_order_data_is_another_message() -> None:
    one, two, first = twins()
    id = MessageId(MAL, 0, 2)
    a = one.sign(Envelope(Message(id, b""), ((BEN, 4),), None, None, 16, 0, NOW))
    b = two.sign(Envelope(Message(id, b""), (), None, None, 16, 0, NOW))
    assert Reader().read(first, a, b) == ["same_id"]


def test_a_total_order_may_stamp_a_message_again() -> None:
    """DRIFT puts a message whose stream was cut into the next stream: that is no second message."""
    writer, reader = Writer("mal"), Reader()
    message = Message(MessageId(MAL, 0, 1), b"once")
    writer.authors.accept([Accept(message)])
    for number in (1, 2):
        packet = DriftPacket(Flood(MAL, number, 1, 5 + number, message), Piggyback(0, 0, 0))
        writer.authors.sign(packet)
        assert reader.authors.check(list(packet.written())) is None
    assert not reader.found


def test_lost_and_forgotten_predecessors_block_nothing() -> None:
    writer, reader = Writer("mal"), Reader()
    envelopes = [writer.write(number) for number in range(1, 3 * MOST_HEADERS)]
    Random(4).shuffle(envelopes)
    assert reader.read(*envelopes[::2]) == []
    assert len(reader.authors._history._authors[ROSTER["mal"]].by_id) == MOST_HEADERS
    assert len(reader.authors._history._authors[ROSTER["mal"]].by_previous) <= MOST_HEADERS


def altered(signed: SignedHeader) -> Iterator[SignedHeader]:
    """Every header that a liar can make of a signed one without the author's key."""
    for field in signed.header.__struct_fields__:
        value = getattr(signed.header, field)
        other = value + 1 if isinstance(value, int) else bytes(8 * bool(value)) or b"x"
        yield SignedHeader(msgspec.structs.replace(signed.header, **{field: other}), signed.signature)
    for flipped in (0, 63):
        signature = bytearray(signed.signature)
        signature[flipped] ^= 1
        yield SignedHeader(signed.header, bytes(signature))
    yield SignedHeader(signed.header, b"")


def test_a_liar_cannot_make_evidence_against_an_honest_member() -> None:
    """No pair of an honest member's headers, altered or not, holds as evidence of any kind."""
    ana = Writer("ana")
    reader = Reader()
    assert reader.read(*(ana.write(number, b"%d" % number) for number in range(1, 5))) == []
    honest = list(reader.authors._history._authors[ROSTER["ana"]].by_id.values())
    mal = Reader()
    mal.read(Writer("mal").write(2, b"forged"))
    pool = [*honest, *(each for header in honest for each in altered(header))]
    pool += list(mal.authors._history._authors[ROSTER["mal"]].by_id.values())
    for kind in ("same_id", "branch", "reused_incarnation"):
        for first in pool:
            for second in honest:
                for pair in ((first, second), (second, first)):
                    assert not Equivocation(kind, "picnic", "ana", ROSTER["ana"], *pair).holds(ROSTER["ana"])
    with pytest.raises(ValueError, match="no evidence"):
        Equivocation.from_json(b'{"type": "equivocation"}')


def test_a_signature_of_another_length_is_forged() -> None:
    item = Writer("mal").write(1).written()
    for size in (SIGNATURE_BYTES, SIGNATURE_BYTES + NONCE_BYTES + 1, 200):
        cut = msgspec.structs.replace(item.message, signature=bytes(size))
        assert Reader().authors.check([Written(cut, order=item.order, same_for_all=True)]) == "forged"
    parts = split(Writer("mal").write(2).message.signature)
    assert parts is not None
    assert len(parts[2]) in (0, LINK_BYTES)


# -- honest members that crash ---------------------------------------------------------------------------


def test_a_restart_from_a_store_continues_the_chain(tmp_path: Path) -> None:
    """Also for a protocol that persists payloads only: it accepts its messages again after the restart."""
    reader = Reader()
    for start in range(4):
        store = Store(tmp_path / "ana.db", synchronous=False)
        writer = Writer("ana", store)
        if start:
            reader.read(writer.write(3 * start, b"%d" % (3 * start)), writer.write(3 * start - 1, b"x"))
        reader.read(writer.write(3 * start + 1, b"y"), writer.write(3 * start + 2, b"x"))
        reader.read(writer.write(3 * start + 3, b"%d" % (3 * start + 3)))
        store.commit()
        Writer("ana", store).write(3 * start + 4, b"lost with the transaction")
        store.abandon()
    assert reader.found == []
    headers = reader.authors._history._authors[ROSTER["ana"]].by_id
    assert [bool(signed.header.previous) for signed in headers.values()].count(False) == 1


def test_a_member_that_lost_its_store_is_not_framed() -> None:
    """Even if it draws an incarnation that it had before: that is a hint, and says so."""
    reader = Reader()
    for start in range(3):
        writer = Writer("ana")
        kinds = reader.read(writer.write(1, b"%d" % start), writer.write(2, b"%d" % start))
    assert set(kinds) == {"reused_incarnation"}
    assert not reader.evidence("ana").is_proof
    assert "in two streams" in reader.evidence("ana").text


def test_a_protocol_that_forgot_its_numbers_begins_a_new_stream(tmp_path: Path) -> None:
    reader = Reader()
    for start in range(3):
        store = Store(tmp_path / "ana.db", synchronous=False)
        writer = Writer("ana", store)
        for number in range(1, 4):
            reader.read(writer.write(number, b"%d %d" % (start, number)))
        store.close()
    assert {kind for kind, _, _ in reader.found} == {"reused_incarnation"}


def test_a_store_forgets_old_links_and_frames_nobody(tmp_path: Path) -> None:
    store = Store(tmp_path / "ana.db", synchronous=False)
    writer, reader = Writer("ana", store), Reader()
    reader.read(writer.write(1, b"one"), writer.write(2, b"two"))
    writer.write(MOST_LINKS + 1024, b"much later")
    assert store.link_of(MessageId(ANA, 0, 1)) is None
    reader.read(writer.write(1, b"one"), writer.write(2, b"two"))
    assert reader.found == []


# -- real members ----------------------------------------------------------------------------------------


def test_equivocation_shows_in_status_log_and_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    one, two, first = twins()
    stories = [first, one.write(2, b"yes"), *(two.write(number, b"no") for number in range(2, 12))]

    async def live(lies: bool) -> list[Equivocation]:
        settings = {"log": tmp_path / "log", "store": tmp_path / "cem.db"}
        cem, c = member("cem", options={"dissemination": "epidemic"}, **settings)
        async with cem:
            if lies:
                insider = Insider("mal", "picnic", KEY, c.address, SEEDS["mal"], ROSTER)
                await insider.meet("cem")
                for envelope in stories:
                    insider.send(encoded([envelope]), "cem")
                assert (await take(cem, 2))[:2] == [b"first", b"yes"]
                await insider.stop()
            evidence: list[Equivocation] = cem.status()["evidence"]
            warned = [each.peer for each in cem.status()["warnings"] if each.code == "equivocation"]
            assert warned == (["mal"] if lies else [])
            return evidence

    with caplog.at_level(logging.WARNING, "precede"):
        evidence = asyncio.run(live(True))
    assert sum("signed two different messages" in record.message for record in caplog.records) == 1
    assert 1 <= len(evidence) <= MOST_OF_AN_AUTHOR
    assert all(each.holds(ROSTER["mal"]) and each.author == "mal" for each in evidence)
    assert asyncio.run(live(False)) == evidence  # it is in the store

    file = tmp_path / "log" / "evidence.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [Equivocation.from_json(line) for line in file.read_bytes().splitlines()] == evidence
    assert main(["verify", str(tmp_path / "log"), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "unknown"  # the log of mal is missing
    assert {(each["author"], each["key"]) for each in said["evidence"]} == {("mal", ROSTER["mal"].hex())}
    main(["verify", str(tmp_path / "log")])
    assert "evidence: mal signed two different messages with one id" in capsys.readouterr().out
    file.write_bytes(file.read_bytes().replace(b'"author":"mal"', b'"author":"a\\n\\u001b[2J"'))
    main(["verify", str(tmp_path / "log")])
    assert "evidence: a\\n\\x1b[2J signed" in capsys.readouterr().out
    file.write_bytes(file.read_bytes().replace(b'"number":2', b'"number":3'))
    assert main(["verify", str(tmp_path / "log")]) == 2
    assert "evidence.jsonl, line 1: evidence that its author did not sign" in capsys.readouterr().err


def test_redacted_evidence_names_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, first = twins()

    async def live() -> None:
        cem, c = member("cem", options={"dissemination": "epidemic"}, log=tmp_path / "log", redact=True)
        async with cem:
            insider = Insider("mal", "picnic", KEY, c.address, SEEDS["mal"], ROSTER)
            await insider.meet("cem")
            for envelope in (first, one.write(2, b"yes"), two.write(2, b"no")):
                insider.send(encoded([envelope]), "cem")
            await until(lambda: cem.status()["evidence"])
            assert cem.status()["evidence"][0].author == "mal"
            await insider.stop()

    asyncio.run(live())
    text = (tmp_path / "log" / "evidence.jsonl").read_text()
    assert '"kind":"same_id"' in text
    assert "mal" not in text
    assert str(MAL) not in text
    assert main(["verify", str(tmp_path / "log")]) == 1
    assert "the log is redacted" in capsys.readouterr().out


@pytest.mark.parametrize("order", ["fifo", "causal", "delta", "multicast", "total"])
def test_honest_members_that_crash_leave_no_evidence(order: str, tmp_path: Path) -> None:
    """Ana is killed between broadcasts and comes back from her store: her chain goes on."""
    names = ("ana", "ben")
    given: dict[str, Any] = {"order": order, "members": names}
    if order == "delta":
        given["lifetime"] = "10min"
    if order == "total":
        given["options"] = {"quiet": "300ms"}

    async def live() -> None:
        ben, b = member("ben", store=tmp_path / "ben", **given)
        async with ben:
            for start in range(3):
                ana, a = member("ana", store=tmp_path / "ana", **given)
                await ana.__aenter__()
                introduce(a, b)
                await until(lambda: ana.neighbours() and ben.neighbours())  # noqa: B023
                if order == "multicast":
                    await ana.multicast(b"%d" % start, to=["ben"])
                else:
                    await when_taken(ana, b"%d" % start)
                assert await take(ben, 1, 30) == [b"%d" % start]
                await ana.crash()
            headers = ben._membership.authors._history._authors[ROSTER["ana"]].by_id  # type: ignore[union-attr]
            chain = [signed.header for signed in headers.values()]
            assert [header.number for header in chain] == [1, 2, 3]
            assert [header.previous for header in chain[1:]] == [header.link() for header in chain[:-1]]
            assert ben.status()["evidence"] == []

    asyncio.run(live())
