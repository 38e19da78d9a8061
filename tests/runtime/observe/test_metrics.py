"""A member's metrics: what they count, how they are written, and who may read them."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess

import pytest

import precede
from precede.core.errors import BadInput
from precede.runtime.observe.endpoint import MOST_CONNECTIONS, MOST_REQUEST_BYTES
from precede.runtime.observe.exposition import MOST_LABEL, samples_of, to_text
from precede.runtime.observe.families import labelled
from precede.runtime.settings import wall_clock
from tests.runtime.observe.members import ask, endpoint, pair, raw

EVIL = 'b"en}\n\\ 1\n# HELP \u202eme'


def values(text: str) -> dict[str, float]:
    """The sums of all samples by name and, with labels, by `name{label=value}` for each label."""
    sums: dict[str, float] = {}
    for name, labels, value in samples_of(text):
        for key in (name, *(f"{name}{{{label}={text}}}" for label, text in labels)):
            sums[key] = sums.get(key, 0) + value
    return sums


class Stuck:
    """A node with one message that waits."""

    def __init__(self, node: object, item: precede.Waiting) -> None:
        self.node = node
        self.item = item

    def __getattr__(self, name: str) -> object:
        return getattr(self.node, name)

    def waiting(self) -> list[precede.Waiting]:
        return [self.item]


async def deliver_all(group: precede.Group, count: int) -> None:
    taken = 0
    async for _ in group:
        taken += 1
        if taken == count:
            return


def test_metrics_count_what_a_group_does(tmp_path):
    async def main() -> tuple[dict[str, float], dict[str, object], str]:
        async with pair("ana", "ben", store=None) as (ana, ben):
            for number in range(5):
                await ana.broadcast(b"%d" % number)
            await deliver_all(ben, 5)
            _, head, text = await ask(endpoint(ben), "/metrics")
            _, _, status = await ask(endpoint(ben), "/status")
            return values(text), json.loads(status), head

    counted, status, head = asyncio.run(main())
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert counted["precede_deliveries_total{order=causal}"] == 5
    assert counted["precede_deliveries_total{member=ben}"] == 5
    assert counted["precede_broadcasts_total"] == 0
    assert counted["precede_neighbours"] == counted["precede_neighbour{peer=ana}"] == 1
    assert counted["precede_waiting"] == counted["precede_oldest_wait_seconds"] == 0
    assert counted["precede_frames_total{direction=in}"] > 5
    assert counted["precede_frame_bytes_total{kind=handshake}"] >= 73
    assert counted["precede_packets_total{kind=gossip}"] >= 1
    assert counted["precede_handshakes_total{event=confirmed}"] >= 1
    assert counted["process_cpu_seconds_total"] > 0
    assert "precede_store_bytes" not in counted
    assert status["neighbours"] == ["ana"]
    assert status["deliveries"] == 5
    assert list(status["delivered"].values()) == [5]


def test_deliveries_in_topics_are_counted_by_their_order():
    async def main() -> dict[str, float]:
        async with pair("ana", "ben") as (ana, ben):
            garden = ben.topic("garden", order="fifo")
            await ana.broadcast(b"to all")
            await ana.topic("garden", order="fifo").broadcast(b"to the gardeners")
            await anext(aiter(ben))
            await anext(aiter(garden))
            return values((await ask(endpoint(ben), "/metrics"))[2])

    counted = asyncio.run(main())
    assert counted["precede_deliveries_total{order=causal}"] == 1
    assert counted["precede_deliveries_total{order=fifo}"] == 1


def test_a_store_shows_its_size_and_the_room_on_its_disk(tmp_path):
    async def main() -> dict[str, float]:
        settings = {"key": None, "store": tmp_path / "ana.store", "metrics": ("127.0.0.1", 0)}
        async with precede.join("picnic", "ana", **settings) as ana:
            await ana.broadcast(b"x" * 100_000)
            return values((await ask(endpoint(ana), "/metrics"))[2])

    counted = asyncio.run(main())
    assert counted["precede_store_bytes"] > 100_000
    assert counted["precede_store_free_bytes"] > 0
    assert counted["precede_store_failed"] == 0
    assert counted["precede_broadcasts_total"] == 1


def test_a_waiting_message_shows_what_it_waits_for():
    async def main() -> tuple[dict[str, object], dict[str, float]]:
        settings = {"key": None, "metrics": ("127.0.0.1", 0), "members": ["ben", "cem"]}
        async with precede.join("picnic", "ana", **settings) as ana:
            ben, cem = (ana._names.id_of(name) for name in ("ben", "cem"))
            question, answer = precede.MessageId(ben, 1, 7), precede.MessageId(cem, 1, 1)
            ana.driver.node = Stuck(ana.driver.node, precede.Waiting(answer, (question,), wall_clock()))
            await asyncio.sleep(0.05)
            status = json.loads((await ask(endpoint(ana), "/status"))[2])
            return status, values((await ask(endpoint(ana), "/metrics"))[2])

    status, counted = asyncio.run(main())
    assert counted["precede_waiting"] == status["waiting"] == 1
    assert counted["precede_oldest_wait_seconds"] > 0.04
    assert status["waits"][0]["message"] == "cem:1"
    assert status["waits"][0]["for"] == ["ben:7"]


def test_names_are_escaped_and_read_back():
    text = to_text([labelled("x_total", "counter", "things", "peer", {EVIL: 1, "\ud800": 2})])
    assert len(text.splitlines()) == 4
    assert [labels for _, labels, _ in samples_of(text)] == [(("peer", EVIL),), (("peer", "\\ud800"),)]
    long = to_text([labelled("x_total", "counter", "things", "peer", {"a" * 9_999: 1})])
    assert len(long) < 3 * MOST_LABEL


def test_what_is_no_sample_is_named_with_its_line():
    with pytest.raises(BadInput, match="line 2: not a sample"):
        list(samples_of("a 1\n<html>"))
    with pytest.raises(BadInput, match="line 1: labels are not"):
        list(samples_of("a{b=c} 1"))
    with pytest.raises(BadInput, match="line 1: not a number"):
        list(samples_of("a one"))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")
def test_promtool_accepts_the_metrics_of_a_member_with_a_hostile_name(tmp_path):
    async def main() -> str:
        async with pair("ana", EVIL) as (ana, _):
            await ana.broadcast(b"hello")
            return (await ask(endpoint(ana), "/metrics"))[2]

    text = asyncio.run(main())
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_endpoint_answers_requests_that_it_understands():
    async def main() -> None:
        async with precede.join("picnic", "ana", key=None, metrics=("127.0.0.1", 0)) as ana:
            at = endpoint(ana)
            assert (await ask(at, "/metrics?x=1"))[0] == 200
            assert (await ask(at, "/metrics", "localhost:9100"))[0] == 200
            assert (await ask(at, "/metrics", "[::1]:9100"))[0] == 200
            assert (await ask(at, "/metrics", "evil.example:9100"))[0] == 403  # a page that was led here
            assert (await ask(at, "/metrics", ""))[0] == 403
            assert (await ask(at, "/metrics", method="POST"))[0] == 405
            assert (await ask(at, "/metrics", method="HEAD"))[2] == ""
            assert (await ask(at, "/../etc/passwd"))[0] == 404
            assert "400 Bad Request" in await raw(at, b"\xff\xfe\r\n\r\n")
            assert await raw(at, b"GET /" + b"x" * 2 * MOST_REQUEST_BYTES) == ""
            idle = [await asyncio.open_connection(*at) for _ in range(MOST_CONNECTIONS)]
            await asyncio.sleep(0.05)
            assert await raw(at, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") == ""
            for _, writer in idle:
                writer.close()
            await asyncio.sleep(0.05)
            assert (await ask(at, "/metrics"))[0] == 200

    asyncio.run(main())


def test_an_address_that_is_taken_or_no_address_is_one_line():
    async def main() -> None:
        async with precede.join("picnic", "ana", key=None, metrics=("127.0.0.1", 0)) as ana:
            with pytest.raises(BadInput, match=r"metrics: cannot listen on 127.0.0.1:\d+: "):
                async with precede.join("picnic", "ben", key=None, metrics=endpoint(ana)):
                    pass

    asyncio.run(main())
    with pytest.raises(BadInput, match="metrics: expected an address"):
        precede.join("picnic", "ana", key=None, metrics="127.0.0.1:9100")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="segment: expected more than 0"):
        precede.join("picnic", "ana", key=None, segment=0)
