"""The registry: every name builds, mistakes are told with the nearest word, others' packages add names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from precede.core.errors import BadInput
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.drift2006.options import parse_node_ids

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("name", registry.names())
def test_every_protocol_says_what_it_is_and_builds(name: str) -> None:
    entry = registry.find(name)
    assert entry.name == name
    assert entry.title
    assert entry.paper
    assert entry.worlds
    for role in entry.roles:
        node = registry.make(name, role, Context(0, (0, 1, 2, 3), {}, Random(1)))
        assert set(node.drains()) <= set(node.sizes()), "a buffer that must drain has no size"


@pytest.mark.parametrize("name", registry.names())
def test_every_packet_can_be_told_from_bytes(name: str) -> None:
    import msgspec

    for packet in registry.find(name).packets:
        assert isinstance(packet.kind, str)
        for size in ("size_bytes", "control_bytes", "control_entries", "messages"):
            assert hasattr(packet, size), f"{packet.__name__} has no {size}"
        msgspec.msgpack.Decoder(packet)


@pytest.mark.parametrize(
    ("name", "options", "cause"),
    [
        ("vector_clok", {}, "did you mean 'vector_clock'"),
        ("fifo", {"durabel": True}, "no option 'durabel' .did you mean 'durable'"),
        ("fifo", {"durable": "perhaps"}, "neither true nor false"),
        ("fifo", {"rto": "soon"}, "not a duration"),
        ("fifo", {"dissemination": "pigeon"}, "unknown dissemination"),
    ],
)
def test_a_mistake_is_told_in_one_line(name: str, options: dict[str, object], cause: str) -> None:
    with pytest.raises(BadInput, match=cause):
        registry.make(name, "node", Context(0, (0, 1), options, Random(1)))


def test_a_role_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="has no role 'king'"):
        registry.make("fifo", "king", Context(0, (0,), {}, Random(1)))


def test_somebody_elses_package_adds_a_protocol(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from precede.protocols.layered.fifo import Fifo\n"
        "from precede.protocols.options import Durable\n"
        "from precede.protocols.registry import Entry\n"
        "ENTRY = Entry('mine', 'my own', 'none', 'fifo', ('point_to_point',), Durable, ordering=Fifo)\n"
    )
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[precede.protocols]\nmine = mine:ENTRY\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE)])}

    def precede(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "precede", *words],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert "my own" in precede("protocols")
    assert "mine (order: fifo)" in precede("simulate", "small-office", "--protocol", "mine", "--out", "run")


@pytest.mark.parametrize(
    ("protocol", "options", "said"),
    [
        ("vector_clock", {"rto": -5}, "'rto': -5 is not between 0s and"),
        ("vcube", {"test_every": "0s"}, "'test_every': 0 is not between 1ms and"),
        ("vcube", {"mtu": []}, "'mtu'"),
        ("ck", {"connect_retry": "0s"}, "'connect_retry': 0 is not between 1ms"),
        ("was", {"collision_limit": "nan"}, "nan is not between"),
        ("drift", {"sources": ["0", "1"]}, "'sources': expected text"),
        ("delta_causal", {"lifetime": 10**25}, "is not between 0s and"),
    ],
)
def test_an_option_that_would_stop_time_or_break_later_is_refused(
    protocol: str, options: dict[str, Any], said: str
) -> None:
    entry = registry.find(protocol)
    with pytest.raises(BadInput) as refused:
        registry.read_options(entry, options)
    assert said in str(refused.value)


def test_ids_of_sources_are_read_or_refused() -> None:
    assert parse_node_ids("0 3 5-7") == {0, 3, 5, 6, 7}
    for wrong in ("a", "x-5", "7-5", "0-99999999999"):
        with pytest.raises(BadInput, match="node ids"):
            parse_node_ids(wrong)
