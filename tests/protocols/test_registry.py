"""The registry: every protocol builds, errors name the nearest known word, plug-ins add protocols."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from precede.core.effects import Accept
from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.floods.options import parse_node_ids
from precede.protocols.guidec2021.options import DeltaCausalOptions
from precede.protocols.options import declared_options, option, written_options

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("name", registry.names())
def test_every_protocol_is_described_and_builds(name: str) -> None:
    entry = registry.find(name)
    assert entry.name == name
    assert entry.title
    assert entry.paper
    assert entry.worlds
    for role in entry.roles:
        node = registry.make(name, role, Context(0, (0, 1, 2, 3), {}, Random(1)))
        assert set(node.drains()) <= set(node.sizes()), "a buffer that must drain has no size"


@pytest.mark.parametrize("name", registry.names())
def test_every_packet_has_its_sizes_and_can_be_decoded(name: str) -> None:
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
        ("fifo", {"durable": "perhaps"}, "expected true or false"),
        ("fifo", {"rto": "soon"}, "not a duration"),
        ("fifo", {"dissemination": "pigeon"}, "unknown dissemination"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_cause(name: str, options: dict[str, object], cause: str) -> None:
    with pytest.raises(BadInput, match=cause):
        registry.make(name, "node", Context(0, (0, 1), options, Random(1)))


def test_an_unknown_role_is_an_error() -> None:
    with pytest.raises(BadInput, match="has no role 'king'"):
        registry.make("fifo", "king", Context(0, (0,), {}, Random(1)))


def test_a_plug_in_adds_a_protocol(tmp_path: Path) -> None:
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
    ("protocol", "options", "cause"),
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
def test_an_option_out_of_bounds_is_an_error(protocol: str, options: dict[str, Any], cause: str) -> None:
    entry = registry.find(protocol)
    with pytest.raises(BadInput) as refused:
        registry.read_options(entry, options)
    assert cause in str(refused.value)


def test_ids_of_sources_are_read() -> None:
    assert parse_node_ids("0 3 5-7") == {0, 3, 5, 6, 7}
    for wrong in ("a", "x-5", "7-5", "0-99999999999"):
        with pytest.raises(BadInput, match="node ids"):
            parse_node_ids(wrong)


def test_options_are_grouped_by_the_dissemination_they_apply_to() -> None:
    groups = registry.option_groups(registry.find("delta_causal"))
    routings = ["direct_delivery", "first_contact", "spray_and_wait", "prophet", "maxprop"]
    assert list(groups) == ["", "direct", "epidemic", "flooding", "gossip", *routings]
    assert set(groups["spray_and_wait"]) == {"buffer", "cache", "copies"}
    assert {"lifetime", "durable"} <= set(groups[""])
    assert set(groups["direct"]) == {"rto"}
    assert set(groups["epidemic"]) == {"order", "cache", "cache_bytes", "evict", "sweep", "refresh"}
    assert {"retention", "beacon"} <= set(groups["flooding"])
    assert {"medium", "digest", "cache", "cache_bytes"} <= set(groups["gossip"])
    assert list(registry.option_groups(registry.find("vcube"))) == [""]


def test_a_node_is_built_from_its_own_struct_as_well() -> None:
    options = DeltaCausalOptions(lifetime=5 * SECOND)
    read = registry.read_options(registry.find("delta_causal"), options)
    assert read.ordering == options
    node = registry.make("delta_causal", "node", Context(0, (0, 1), options, Random(1)))
    (accepted,) = [effect for effect in node.broadcast(b"", 0) if isinstance(effect, Accept)]
    assert accepted.deadline == 5 * SECOND


class NoHelp(Struct, frozen=True, kw_only=True):
    size: int = 3


class NoDefault(Struct, frozen=True, kw_only=True):
    size: Annotated[int, option("bytes")]


class Unreadable(Struct, frozen=True, kw_only=True):
    sizes: Annotated[list[int], option("bytes")] = []


@pytest.mark.parametrize(
    ("struct", "cause"),
    [
        (NoHelp, "NoHelp.size: write Annotated"),
        (NoDefault, "NoDefault.size: an option needs a default"),
        (Unreadable, r"Unreadable.sizes: list\[int\] needs a function that reads it"),
    ],
)
def test_an_incomplete_declaration_is_an_error_that_names_the_field(struct: type[Struct], cause: str) -> None:
    with pytest.raises(TypeError, match=cause):
        declared_options(struct)


class _Point:
    """An entry point that loads this entry."""

    def __init__(self, entry: object) -> None:
        self._entry = entry

    def load(self) -> object:
        return self._entry


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ("mine", "its entry point is a str, not an Entry"),
        (replace(registry.find("fifo"), options={"durable": False}), "its options are not a declared struct"),
        (replace(registry.find("fifo"), options=NoHelp), "NoHelp.size: write Annotated"),
    ],
)
def test_a_wrong_plug_in_is_an_error(entry: object, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_foreign", lambda: {"mine": _Point(entry)})
    with pytest.raises(BadInput, match=cause):
        registry.find("mine")


@pytest.mark.parametrize("target", ["module", "module:", ":NAME", ":", ""])
def test_an_object_is_named_by_its_module_and_its_name(target: str) -> None:
    with pytest.raises(BadInput, match="write MODULE:NAME"):
        registry.load_object(target)


def test_options_are_written_as_a_user_writes_them() -> None:
    options = registry.find("delta_causal").options(lifetime=600 * SECOND)
    assert written_options(options) == {"lifetime": "10min"}
    assert written_options({"cache": 5}) == {"cache": 5}
    with pytest.raises(BadInput, match="expected a mapping"):
        written_options(["cache"])  # type: ignore[arg-type]
