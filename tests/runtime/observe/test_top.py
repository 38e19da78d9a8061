"""`precede top`: members side by side, whatever they call themselves and whoever answers."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from precede import cli
from precede.cli.field import top_screen
from precede.cli.field.top_look import Looker
from precede.core.errors import BadInput
from precede.runtime.observe.overview import (
    MOST_STATUS_BYTES,
    Followed,
    MemberStatus,
    Overview,
    Wait,
    fetch_status,
    overview,
    read_endpoint,
)
from tests.runtime.observe.members import endpoint, pair

EVIL = "e\x1b[2Jv\nil" + "x" * 99


def status(member: str, hears: list[str], delivered: dict[str, int], **given: object) -> MemberStatus:
    plain = {
        **{"group": "picnic", "member": member, "order": "causal", "failed": False, "neighbours": hears},
        **{"broadcasts": 0, "deliveries": 3, "untaken": 0, "waiting": 0, "oldest_wait_s": 0.0, "waits": []},
        **{"delivered": delivered, "frames": {}, "bytes": {"in": 100, "out": 7}, "refused": {}, "warnings": 0},
    }
    return msgspec.convert({**plain, **given}, MemberStatus)


def test_lag_and_silence_are_what_others_have_and_hear() -> None:
    ana = status("ana", ["ben"], {"ana/1": 5, "ben/1": 2})
    ben = status("ben", ["ana", "cem"], {"ana/1": 3})
    cem = status("cem", [], {"ana/1": 9}, group="another group")
    rows = overview({"a": ana, "b": ben, "c": cem, "d": "does not answer"}).members
    assert [row.lag for row in rows] == [0, 4, 0, 0]
    assert [row.not_heard for row in rows] == [[], [], [], []]
    assert rows[3].problem == "does not answer"
    assert overview({"a": ana, "b": status("ben", [], {})}).members[1].not_heard == ["ana"]


def test_rates_are_those_since_the_look_before() -> None:
    before = overview({"a": status("ana", [], {})})
    assert (before.members[0].bytes_in_s, before.members[0].bytes_out_s) == (None, None)
    after = overview({"a": status("ana", [], {}, bytes={"in": 300, "out": 7})}, before, 2.0)
    assert (after.members[0].bytes_in_s, after.members[0].bytes_out_s) == (100.0, 0.0)
    restarted = overview({"a": status("ana", [], {}, bytes={"in": 1, "out": 1})}, before, 2.0)
    assert restarted.members[0].bytes_in_s == 0


def test_no_name_changes_the_screen() -> None:
    evil = status(EVIL, [EVIL], {}, waiting=1, waits=[{"message": EVIL, "for": [EVIL], "since_s": 61}])
    shown = overview({EVIL: evil, "b": status("ben", [], {})})
    for width in (20, 80, 200):
        text = top_screen.lines(shown, width, 9)
        assert len(text) <= 9
        assert all(line.isprintable() and len(line) <= width for line in text), text
    assert top_screen.lines(Overview([], [("ana", Wait("b:2", ["b:1"], 5.0))]), 80)[-1] == (
        "ana: b:2 has waited 5.0 s for b:1"
    )


def test_a_look_at_real_members_and_at_nobody() -> None:
    async def main() -> Overview:
        async with pair("ana", "ben") as (ana, ben):
            await ana.broadcast(b"hello")
            await anext(aiter(ben))
            return await Looker([endpoint(ana), endpoint(ben), ("127.0.0.1", 9)], None).look()

    look = asyncio.run(main())
    assert [row.member for row in look.members] == ["ana", "ben", ""]
    assert [row.hears for row in look.members] == [["ben"], ["ana"], []]
    assert [row.deliveries for row in look.members] == [1, 1, 0]
    assert look.members[2].problem.startswith("not reachable: ")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "is no member"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 5_000, "is no member"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "refuses: HTTP/1.1 403 Forbidden"),
        (b"", "refuses: "),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (MOST_STATUS_BYTES + 1), "is no member"),
    ],
)
def test_whoever_answers_is_no_danger(answer: bytes, problem: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async def main() -> MemberStatus | str:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await fetch_status(server.sockets[0].getsockname())

    found = asyncio.run(main())
    assert isinstance(found, str)
    assert found.startswith(problem)


@pytest.mark.parametrize("text", ["nonsense", ":9100", "host:", "host:99999", "https://host:1"])
def test_an_address_is_a_host_and_a_port(text: str) -> None:
    with pytest.raises(BadInput, match="expected HOST:PORT"):
        print(read_endpoint(text))


def test_the_command_answers_mistakes_in_one_line(tmp_path, capsys) -> None:
    assert cli.main(["top"]) == 2
    assert cli.main(["top", "127.0.0.1:9", "--metrics", "127.0.0.1:0", "--once"]) == 2
    assert cli.main(["top", "--log", str(tmp_path / "nowhere"), "--once"]) == 2
    assert cli.main(["top", "--log", str(tmp_path), "--order", "display"]) == 2
    assert cli.main(["top", "127.0.0.1:9", "--once"]) == 3
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 5
    assert all(line.startswith("precede top: ") and line.endswith("]") for line in errors), errors
    assert cli.main(["top", "--log", str(tmp_path), "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["followed"]["violations"] == {}


def test_a_first_look_has_no_rates_and_own_frames_from_the_lan_are_not_refused() -> None:
    ana = status("ana", [], {}, refused={"own": 90, "forged": 2})
    head, row = top_screen.lines(overview({"a": ana}), 110)
    assert dict(zip(head.split(), row.split(), strict=False))["member"] == "ana"
    assert row.split()[-3:] == ["-", "-", "2"]


def test_a_look_at_logs_alone_has_no_table() -> None:
    intact = Followed("causal", 9, 4, 0, [], {}, [])
    assert top_screen.lines(overview({}, followed=intact), 110) == [
        "causal order, 4 deliveries verified: no violations"
    ]
    violated = Followed("causal", 9, 4, 0, [], {"causal": 1, "duplicate": 1_200}, [])
    assert top_screen.lines(overview({}, followed=violated), 110) == [
        "causal order, 4 deliveries verified: 1 causal violation, 1,200 duplicate violations"
    ]
