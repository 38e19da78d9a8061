"""Measures the bytes on the wire besides the payload, for each protocol, and what a small frame holds.

`python -m tests.vectors.budget` writes the table in `docs/reference/byte-budget.md` again.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any, Final

from precede.core.effects import Send
from precede.core.node import Context, Node
from precede.eventlog.sinks import NoSink
from precede.experiments.run import Run, carry_out
from precede.protocols import registry
from precede.runtime.codec import Codec
from precede.runtime.links.channel import HEADER
from precede.runtime.links.fragments import HEADER_BYTES
from precede.runtime.links.sessions import DATA_OVERHEAD
from tests.entries import wrapped

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "byte-budget.md"
FRAME: Final = 255
PAYLOAD: Final = 20
AROUND: Final = DATA_OVERHEAD + HEADER.size + HEADER_BYTES + 1
_TALK: Final = {"poisson": "300ms", "until": "6s", "size": PAYLOAD}
_MESH: Final[dict[str, Any]] = {
    "world": {"kind": "point_to_point", "nodes": 8, "delay": "exponential(0.05)"},
    "workload": _TALK,
    "end": "10s",
}
_CELLS: Final[dict[str, Any]] = {
    "world": {"kind": "cellular", "stations": 2, "hosts": 6, "movement": "still", "radio": "lossy"},
    "workload": {**_TALK, "first": "1s"},
    "end": "10s",
}
_AIR: Final[dict[str, Any]] = {
    "world": {"kind": "flood", "grid": [4, 2], "spacing": 70.0, "reach": 88.0},
    "workload": _TALK,
    "end": "10s",
}
SCENARIOS: Final[dict[str, dict[str, Any]]] = {
    "unordered": _MESH,
    "fifo": _MESH,
    "vector_clock": _MESH,
    "causal_barrier": _MESH,
    "delta_causal": {**_MESH, "options": {"lifetime": "1min"}},
    "hash_dag": _MESH,
    "arrival": _MESH,
    "timestamp": _MESH,
    "lamport": _MESH,
    "sds": {**_MESH, "options": {"filter": 20}},
    "prs": {**_MESH, "workload": {**_TALK, "to": 2}},
    "rst": {**_MESH, "workload": {**_TALK, "to": 2}},
    "ses": {**_MESH, "workload": {**_TALK, "to": 2}},
    "prs_mobile": {**_CELLS, "workload": {**_TALK, "first": "1s", "to": 2}},
    "vcube": _MESH,
    "drift": _AIR,
    "tof": _AIR,
    "was": _CELLS,
    "ck": _CELLS,
}


class Weighed(Node):
    """A node that records the sizes of its packets with one message."""

    def __init__(self, node: Node, codec: Codec, weights: list[int]) -> None:
        self._node = node
        self._codec = codec
        self._weights = weights

    def __getattribute__(self, name: str) -> Any:
        if name in ("start", "broadcast", "receive", "sent", "timer", "link_up", "link_down", "leave"):
            call = getattr(object.__getattribute__(self, "_node"), name)
            return lambda *given: object.__getattribute__(self, "_seen")(call(*given))
        return object.__getattribute__(self, name)

    def _seen(self, effects: Any) -> Any:
        for effect in effects:
            if type(effect) is Send and effect.packet.messages == 1:
                self._weights.append(len(self._codec.encode(effect.packet)) - PAYLOAD)
        return effects


def weights(protocol: str) -> list[int]:
    """The bytes besides the payload of every packet with one message, in one simulated run."""
    scenario, found = SCENARIOS[protocol], list[int]()
    entry = registry.find(protocol)
    spread = "direct"

    def wrap(made: Node, context: Context[Any]) -> Node:
        return Weighed(made, Codec(*registry.wire_types(entry, made, spread)), found)

    watched = wrapped(entry, wrap, spread)
    carry_out(Run(protocol=protocol, seed=2, gauges="none", **scenario), NoSink(), watched)
    return found


def table() -> str:
    """The table: bytes besides the payload, and the longest payload that usually fits into a 255-byte frame."""
    lines = [
        "| protocol | least | median | most | payload in a sealed frame | in an open one |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for protocol in SCENARIOS:
        found = weights(protocol)
        middle = int(median(found))
        sealed = FRAME - AROUND - middle
        opened = FRAME - (AROUND - DATA_OVERHEAD + 18) - middle
        row = (protocol, min(found), middle, max(found), _room(sealed), _room(opened))
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)


def _room(left: int) -> str:
    return f"{left} bytes" if left > 0 else "none: in pieces"


def with_table(page: str) -> str:
    before, _, rest = page.partition("<!-- budget -->\n")
    _, _, after = rest.partition("<!-- /budget -->")
    return f"{before}<!-- budget -->\n{table()}\n<!-- /budget -->{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
