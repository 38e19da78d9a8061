"""Makes test vectors for ports to other languages: the inputs and effects of nodes, with packets as bytes.

`python -m tests.vectors.making` writes `docs/reference/vectors/<protocol>.json` again from the scenarios below;
`docs/reference/wire.md` says how to read them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from precede.core.effects import Effects, Key, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node, Saved
from precede.eventlog.sinks import NoSink
from precede.experiments.run import Run, carry_out
from precede.protocols import registry
from precede.runtime.codec import Codec
from tests.entries import wrapped

FOLDER: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "vectors"

_TALK: Final = [{"src": str(n % 3), "at": f"{10 * n}ms"} for n in range(1, 8)]
_MESH: Final = {"kind": "point_to_point", "nodes": 3, "delay": "exponential(0.02)", "loss": 0.1}
_MEETINGS: Final = {**_MESH, "loss": 0.0, "link_events": True}
_TO_SOME: Final = [
    {**said, "to": [str(n) for n in range(3) if (n + place) % 3]} for place, said in enumerate(_TALK)
]
SCENARIOS: Final[dict[str, dict[str, Any]]] = {
    "unordered": {
        "world": _MESH,
        "workload": {"script": _TALK, "size": 8},
        "options": {"dissemination": "gossip"},
    },
    "fifo": {"world": _MESH, "workload": {"script": _TALK, "size": 8}},
    "vector_clock": {"world": _MESH, "workload": {"script": _TALK, "size": 8}},
    "causal_barrier": {
        "world": _MEETINGS,
        "workload": {"script": _TALK, "size": 8},
        "options": {"dissemination": "epidemic", "durable": True},
    },
    "delta_causal": {
        "world": _MEETINGS,
        "workload": {"script": _TALK, "size": 8},
        "options": {"dissemination": "epidemic", "lifetime": "50ms"},
    },
    "lamport": {"world": _MESH, "workload": {"script": _TALK, "size": 8}},
    "sds": {"world": _MESH, "workload": {"script": _TALK, "size": 8}, "options": {"filter": 10}},
    "prs": {"world": _MESH, "workload": {"script": _TO_SOME, "size": 8}, "options": {"durable": True}},
    "vcube": {"world": {**_MESH, "loss": 0.0}, "workload": {"script": _TALK, "size": 8}},
}


class Recorded(Node):
    """A node whose inputs and effects are recorded."""

    def __init__(self, node: Node, codec: Codec, talk: list[dict[str, Any]]) -> None:
        self._node = node
        self._codec = codec
        self._talk = talk

    def drains(self) -> tuple[str, ...]:
        return self._node.drains()

    def _record(self, name: str, given: dict[str, Any], effects: Effects) -> Effects:
        done = [effect_as_data(effect, self._codec) for effect in effects]
        self._talk.append({"input": name, **given, "effects": done})
        return effects

    def start(self, now: Instant, saved: Saved) -> Effects:
        return self._record("start", {"now": now, "saved": []}, self._node.start(now, saved))

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        given = {
            "payload": payload.hex(),
            "now": now,
            "to": None if to is None else list(to),
            "lifetime": lifetime,
        }
        return self._record("broadcast", given, self._node.broadcast(payload, now, to, lifetime))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        wire = self._codec.encode(packet)
        given = {"wire": wire.hex(), "sender": sender, "now": now, "over": over}
        return self._record("receive", given, self._node.receive(self._codec.decode(wire), sender, now, over))

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return self._record("sent", {"key": key, "now": now, "ok": ok}, self._node.sent(key, now, ok))

    def timer(self, key: Key, now: Instant) -> Effects:
        return self._record("timer", {"key": key, "now": now}, self._node.timer(key, now))

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        given = {"peer": peer, "now": now, "over": over}
        return self._record("link_up", given, self._node.link_up(peer, now, over))

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        given = {"peer": peer, "now": now, "over": over}
        return self._record("link_down", given, self._node.link_down(peer, now, over))

    def sizes(self) -> Any:
        return self._node.sizes()


def effect_as_data(effect: Any, codec: Codec) -> dict[str, Any]:
    """An effect as JSON data: its name and fields. Packets and payloads are bytes in hexadecimal.

    The `content` of an accepted message is left out: the packets show it.
    """
    names = [name for name in type(effect).__match_args__ if name != "content"]
    fields = {name: plain(getattr(effect, name), codec) for name in names}
    return {"effect": type(effect).__name__, **fields}


def plain(value: Any, codec: Codec) -> Any:
    if isinstance(value, Packet):
        return {"kind": value.kind, "wire": codec.encode(value).hex()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, msgspec.Struct):
        return [plain(getattr(value, name), codec) for name in value.__struct_fields__]
    if isinstance(value, (tuple, list)):
        return [plain(item, codec) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item, codec) for item in value)
    if isinstance(value, dict):
        return [[plain(key, codec), plain(item, codec)] for key, item in value.items()]
    return value


def node_of(protocol: str, node: NodeId) -> tuple[Node, Codec]:
    """A node of a vector, and the codec of its protocol."""
    entry, options = registry.find(protocol), dict(SCENARIOS[protocol].get("options", {}))
    made = registry.make(protocol, "node", Context(node, (0, 1, 2), options, Random(1)))
    return made, Codec(*registry.wire_types(entry, made, str(options.get("dissemination", "direct"))))


def make(protocol: str) -> dict[str, Any]:
    """The conversation of every node in the scenario of one protocol."""
    entry, talks = registry.find(protocol), dict[int, list[dict[str, Any]]]()

    def wrap(_: Node, context: Context[Any]) -> Node:
        node, codec = node_of(protocol, context.node)
        return Recorded(node, codec, talks.setdefault(context.node, []))

    watched = wrapped(entry, wrap, SCENARIOS[protocol].get("options", {}).get("dissemination"))
    carry_out(Run(protocol=protocol, seed=3, end="2s", gauges="none", **SCENARIOS[protocol]), NoSink(), watched)
    return {
        "protocol": protocol,
        "members": [0, 1, 2],
        "options": SCENARIOS[protocol].get("options", {}),
        "nodes": [{"node": node, "conversation": talk} for node, talk in sorted(talks.items())],
    }


def written(protocol: str) -> str:
    """The text of a protocol's vector file."""
    vector = make(protocol)
    nodes = vector.pop("nodes")
    lines = [
        f'  {{"node": {one["node"]}, "conversation": [\n    '
        + ",\n    ".join(json.dumps(said) for said in one["conversation"])
        + "\n  ]}"
        for one in nodes
    ]
    return json.dumps(vector)[:-1] + ', "nodes": [\n' + ",\n".join(lines) + "\n]}\n"


def kinds_table() -> str:
    """The table of every protocol's packets, with their numbers and fields."""
    lines = ["| protocol | kind | packet | fields |", "| --- | --- | --- | --- |"]
    entries = [registry.find(name) for name in registry.names()]
    spread = {name: registry.find_dissemination(name) for name in ("direct", "epidemic", "flooding", "gossip")}
    for name, dissemination in spread.items():
        lines += _kinds(f"any ordering over `{name}`", dissemination.packets)
    for entry in entries:
        if entry.ordering is None:
            lines += _kinds(f"`{entry.name}`", entry.packets)
        else:
            assert not entry.packets
    return "\n".join(lines)


def _kinds(of: str, packets: Sequence[type[Packet]]) -> list[str]:
    return [
        f"| {of} | {number} | {packet.kind} | {', '.join(packet.__struct_fields__) or 'none'} |"
        for number, packet in enumerate(packets)
    ]


def with_table(page: str) -> str:
    """The specification with its table of packets replaced by the current one."""
    before, _, rest = page.partition("<!-- kinds -->\n")
    _, _, after = rest.partition("<!-- /kinds -->")
    return f"{before}<!-- kinds -->\n{kinds_table()}\n<!-- /kinds -->{after}"


if __name__ == "__main__":
    page = FOLDER.parent / "wire.md"
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in SCENARIOS:
        (FOLDER / f"{name}.json").write_text(written(name), encoding="utf-8")
