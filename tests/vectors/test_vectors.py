"""The test vectors are current, and a program that knows only the specification can follow them."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

from precede.core.node import Node
from precede.protocols import registry
from precede.runtime.codec import Codec
from tests.vectors import budget
from tests.vectors.making import FOLDER, SCENARIOS, effect_as_data, node_of, with_table, written


@pytest.mark.parametrize("protocol", SCENARIOS)
def test_a_node_returns_the_recorded_effects_for_the_recorded_inputs(protocol: str) -> None:
    """As a port would: read the file, give the inputs to a node, compare the effects."""
    follow(protocol, json.loads((FOLDER / f"{protocol}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("protocol", SCENARIOS)
def test_new_vectors_can_be_followed_too(protocol: str) -> None:
    follow(protocol, json.loads(written(protocol)))


def follow(protocol: str, vector: dict[str, Any]) -> None:
    kinds = set()
    for one in vector["nodes"]:
        node, codec = node_of(protocol, one["node"])
        for said in one["conversation"]:
            effects = [
                json.loads(json.dumps(effect_as_data(effect, codec))) for effect in told(node, codec, said)
            ]
            assert effects == said["effects"]
            kinds.update(effect["effect"] for effect in effects)
    assert {"Accept", "Send", "Deliver", "Arrive"} <= kinds


def told(node: Node, codec: Codec, said: dict[str, Any]) -> Any:
    now = said["now"]
    match said["input"]:
        case "start":
            return node.start(now, {})
        case "broadcast":
            to = None if said["to"] is None else tuple(said["to"])
            return node.broadcast(bytes.fromhex(said["payload"]), now, to, said["lifetime"])
        case "receive":
            return node.receive(codec.decode(bytes.fromhex(said["wire"])), said["sender"], now, said["over"])
        case "sent":
            return node.sent(key(said["key"]), now, said["ok"])
        case "timer":
            return node.timer(key(said["key"]), now)
        case "link_up":
            return node.link_up(said["peer"], now, said["over"])
        case _:
            return node.link_down(said["peer"], now, said["over"])


def key(written: Any) -> Any:
    return tuple(written) if isinstance(written, list) else written


def test_the_specification_names_every_kind_of_packet() -> None:
    page = (FOLDER.parent / "wire.md").read_text(encoding="utf-8")
    assert page == with_table(page)


def test_the_byte_budget_is_near_the_sizes_of_real_packets() -> None:
    """Which packets a run has depends on chance; their sizes hardly do."""
    page = budget.PAGE.read_text(encoding="utf-8")
    medians = {
        row.split("|")[1].strip(): int(row.split("|")[3]) for row in page.splitlines() if " bytes |" in row
    }
    ours = [name for name in registry.names() if name not in registry._foreign()]
    assert sorted(medians) == sorted(budget.SCENARIOS) == sorted(ours)
    for protocol, written_median in medians.items():
        assert median(budget.weights(protocol)) == pytest.approx(written_median, rel=0.25, abs=4)
    assert budget.AROUND == 51
