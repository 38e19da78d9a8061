"""What loopback hides: members in network namespaces find each other and keep their order on bad wires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from precede.cli import main
from tests.network.namespaces import SOURCE, Member, Net, network, until, why_not

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    with network(tmp_path) as made:
        yield made


def all_meet(members: list[Member], seconds: float = 15.0) -> None:
    """Every member has all others as neighbours."""
    until(
        lambda: all(len(member.status()["neighbours"]) == len(members) - 1 for member in members),
        seconds,
        lambda: [member.status() for member in members],
    )


def all_deliver(members: list[Member], each: int, seconds: float = 20.0) -> None:
    """Every member broadcasts so many messages; all are delivered everywhere, in each sender's order."""
    for number in range(each):
        for index, member in enumerate(members):
            member.say(broadcast=f"{index} {number}")
    expected = {f"{index} {number}" for index in range(len(members)) for number in range(each)}
    until(
        lambda: all(len(member.delivered()) >= len(expected) for member in members),
        seconds,
        lambda: [(len(member.delivered()), member.status()) for member in members],
    )
    for member in members:
        payloads = [payload for _, payload in member.delivered()]
        assert len(payloads) == len(expected)
        assert set(payloads) == expected
        for index in range(len(members)):
            mine = [int(text.split()[1]) for text in payloads if text.split()[0] == str(index)]
            assert mine == sorted(mine)


def test_the_readme_snippet_finds_its_peers(net: Net) -> None:
    """No address is typed; senders are printed by name, although nobody listed the others."""
    hosts = [net.space(name) for name in ("a", "b")]
    net.wire("w", {hosts[0]: ["10.77.0.1/24"], hosts[1]: ["10.77.0.2/24"]})
    members = [net.member(host, name, lan=True) for host, name in zip(hosts, ("ana", "ben"), strict=True)]
    all_meet(members)
    members[0].say(broadcast="who brings bread?")
    until(lambda: bool(members[1].delivered()), 10, members[1].status)
    assert members[1].delivered() == [("ana", "who brings bread?")]
    assert members[1].status()["warnings"] == []


def test_the_snippet_of_the_readme_as_it_is_printed(net: Net, tmp_path: Path) -> None:
    """Two people copy it, the second with another name. Each prints what the other said."""
    text = (SOURCE.parent / "README.md").read_text(encoding="utf-8")
    snippet = next(part for part in text.split("```") if "precede.join(" in part).partition("\n")[2]
    assert main(["keys", "make", str(tmp_path / "picnic.keys")]) == 0
    hosts = [net.space(name) for name in ("a", "b")]
    net.wire("w", {hosts[0]: ["10.77.0.1/24"], hosts[1]: ["10.77.0.2/24"]})
    printed = [tmp_path / f"{name}.printed" for name in ("ana", "ben")]
    for host, name, output in zip(hosts, ("ana", "ben"), printed, strict=True):
        own = snippet.replace('"ana', f'"{name}').replace("who brings bread?", f"{name} asks")
        program = "import asyncio, precede\nasync def main():\n" + indent(own, "    ") + "\nasyncio.run(main())"
        net.start(host, ("-u", "-c", program), output)
    lines = ("ana b'ana asks'", "ben b'ben asks'")
    until(
        lambda: all(line in output.read_text() for line in lines for output in printed),
        40,
        lambda: [output.read_text() for output in printed],
    )


def test_members_meet_on_every_interface(net: Net) -> None:
    """The member in the middle has two interfaces, one of them without IPv4."""
    a, b, c = (net.space(name) for name in ("a", "b", "c"))
    net.wire("w4", {a: ["10.77.0.1/24"], b: ["10.77.0.2/24"]})
    net.wire("w6", {b: ["fd00:77::2/64"], c: ["fd00:77::3/64"]})
    ana, ben, cem = (net.member(host, name, lan=True) for host, name in ((a, "ana"), (b, "ben"), (c, "cem")))
    names = lambda member: sorted(member.status()["neighbours"])  # noqa: E731
    until(lambda: names(ben) == ["ana", "cem"], 15, lambda: [each.status() for each in (ana, ben, cem)])
    ana.say(broadcast="over two wires")
    until(lambda: cem.delivered() == [("ana", "over two wires")], 15, cem.status)


def test_order_survives_loss_delay_reordering_a_slow_wire_and_a_small_mtu(net: Net) -> None:
    hosts = [net.space(name) for name in ("a", "b", "c")]
    ends = {host: [f"10.77.0.{number}/24", f"fd00:77::{number}/64"] for number, host in enumerate(hosts, 1)}
    net.wire("w", ends, mtu=1280, loss=0.2, delay=0.005, jitter=0.01, reorder=0.1, rate=200_000.0)
    members = [
        net.member(host, name, lan=True, store=f"{name}.db")
        for host, name in zip(hosts, ("ana", "ben", "cem"), strict=True)
    ]
    all_meet(members, 30)
    all_deliver(members, 10, 60)


def test_a_member_behind_an_address_translator(net: Net) -> None:
    """The member behind it names the other's address; the other answers to what it hears."""
    inside, router, outside = (net.space(name) for name in ("in", "nat", "out"))
    net.wire("w1", {inside: ["192.168.5.2/24"], router: ["192.168.5.1/24"]})
    net.wire("w2", {router: ["10.77.0.1/24"], outside: ["10.77.0.2/24"]})
    net.run("ip", "-n", inside, "route", "add", "default", "via", "192.168.5.1")
    net.run("ip", "netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    rules = "add table ip t; add chain ip t c { type nat hook postrouting priority 100; };"
    net.run("ip", "netns", "exec", router, "nft", rules + " add rule ip t c ip saddr 192.168.5.0/24 masquerade")
    far = net.member(outside, "far", bind=["", 5001])
    near = net.member(inside, "near", peers=[["10.77.0.2", 5001]])
    all_meet([far, near])
    all_deliver([far, near], 5)


def test_a_member_alone_says_so_once_with_the_likely_reason(net: Net) -> None:
    host = net.space("a")
    net.wire("w", {host: ["10.77.0.1/24"]})
    alone = net.member(host, "ana", lan=True)
    until(lambda: bool(alone.status()["warnings"]), 15, alone.status)
    (warning,) = alone.status()["warnings"]
    assert warning["code"] == "nobody_heard"
    assert "239.83.7.1:4700" in warning["text"]
    assert "e1" in warning["text"]
    assert "firewall" in warning["text"]
