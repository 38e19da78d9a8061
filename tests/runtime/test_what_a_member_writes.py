"""What a member writes: files that only their owner reads, and lines that nobody else can forge."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import precede
from precede.cli import main
from precede.cli.field.lines import json_line, text_line
from precede.core.errors import BadInput
from precede.core.identity import MessageId
from precede.runtime.deliveries import Delivered
from precede.runtime.links.authorship import public_of
from precede.runtime.links.keyring import read_roster
from precede.runtime.names import node_id
from tests.patience import patient

COLLIDING = ("m7772251", "m17168205")
"""Two names with one node id, found by hashing 30 million names."""


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_only_their_owner_reads_the_files_of_a_member(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o700)

    async def live() -> None:
        store, log = home / "a" / "b" / "ana.db", home / "logs" / "ana"
        async with precede.join("picnic", "ana", key=bytes(32), store=store, log=log) as group:
            await group.broadcast(b"hello")
            modes()

    def modes() -> list[str]:
        seen = []
        for path in sorted(home.rglob("*")):
            seen.append(path.name)
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
        return seen

    for verb in (["make", "g.keys"], ["rotate", "g.keys"], ["identity", "ana.identity", "ana"]):
        assert main(["keys", verb[0], str(home / verb[1]), *verb[2:]]) == 0
    asyncio.run(live())
    assert {"g.keys", "ana.identity", "ana.db", "ana.db-lock"} <= set(modes())
    assert any(name.endswith(".parquet") for name in modes())


HOSTILE = ["a\nben\tforged", "\x1b[31mred", "a\rben\tover", "a\u2028b", "\u202eabc", "a\x85b", "\x9b31m"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_payload_or_a_name_cannot_forge_a_line(text: str) -> None:
    for source, payload in (("ana", text), (text, "hi")):
        message = Delivered(source, 1, payload.encode(), MessageId(7, 0, 1))
        printed = text_line(message)
        assert printed.count("\t") == 1
        assert printed.replace("\t", "").isprintable()
        line = json_line(message)
        assert line.isprintable()
        assert json.loads(line) == {"source": source, "incarnation": 0, "number": 1, "payload": payload}


def test_text_without_control_characters_is_printed_as_it_is() -> None:
    message = Delivered("ana", 1, "Grüße, 你好 \\n \U0001f600".encode(), MessageId(7, 0, 1))
    assert text_line(message) == "ana\tGrüße, 你好 \\n \U0001f600"


def test_two_members_that_could_be_taken_for_one_another_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, other = bytes(32), bytes(31) + b"1"
    mine, theirs = public_of(seed), public_of(other)
    first, second = COLLIDING
    assert node_id(first) == node_id(second)
    rosters = {
        "same key": f"ana {mine.hex()}\nben {mine.hex()}\n",
        "same node id": f"{first} {mine.hex()}\n{second} {theirs.hex()}\n",
        "appears twice": f"ana {mine.hex()}\nana {theirs.hex()}\n",
    }
    path = tmp_path / "g.roster"
    for cause, text in rosters.items():
        path.write_text(text)
        path.chmod(0o600)
        with pytest.raises(BadInput, match=cause):
            read_roster(path)
        identity = tmp_path / "ana.identity"
        identity.write_text(seed.hex())
        identity.chmod(0o600)
        assert main(["keys", "roster", str(path)]) == 2
        arguments = ["node", "ana", "--open", "--identity", str(identity), "--roster", str(path)]
        assert main(arguments) == 2
        assert capsys.readouterr().err.count(cause) == 2
    for roster, cause in (
        ({"ana": mine, "ben": mine}, "roster: 'ana' and 'ben' have the same key"),
        ({first: mine, second: theirs}, "roster: .* have the same node id"),
        ({"ana": mine, first: theirs}, "members, roster: .* have the same node id"),
    ):
        with pytest.raises(BadInput, match=cause):
            precede.join("picnic", "ana", key=None, members=[second], identity=seed, roster=roster)
    for members, cause in ((["ben", "ben"], "'ben' occurs twice"), (list(COLLIDING), "have the same node id")):
        with pytest.raises(BadInput, match=f"members: .*{cause}"):
            precede.join("picnic", "ana", key=None, members=members)


def test_a_roster_is_shown_with_fingerprints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.roster"
    path.write_text(f"ana {public_of(bytes(32)).hex()}\n")
    path.chmod(0o600)
    assert main(["keys", "roster", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.endswith("  ana\n")
    assert public_of(bytes(32)).hex() not in said


def test_a_log_with_redacted_names_verifies_and_has_no_name(tmp_path: Path) -> None:
    async def live() -> None:
        ana = precede.join("picnic", "ana", key=bytes(32), beacon=0.05, log=tmp_path / "log" / "a", redact=True)
        async with ana:
            ben = precede.join(
                *("picnic", "ben"), key=bytes(32), beacon=0.05, log=tmp_path / "log" / "b", redact=True,
                peers=[ana.address],
            )  # fmt: skip
            async with ben:
                await ana.broadcast(b"hello")
                async with asyncio.timeout(patient(20)):
                    async for message in ben:
                        assert message.source == "ana"
                        break

    asyncio.run(live())
    files = sorted((tmp_path / "log").rglob("*.parquet"))
    assert len(files) == 2
    tables = [pq.read_table(file) for file in files]
    texts = {str(value) for table in tables for column in table.columns for value in column.to_pylist()}
    assert not {"ana", "ben"} & texts
    nodes = {name for table in tables for name in table["node"].to_pylist()}
    assert len(nodes) == 2
    assert {name for table in tables for name in table["message_source"].to_pylist() if name} < nodes
    assert precede.verify(tmp_path / "log").verdict == "holds"
