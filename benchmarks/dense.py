"""How many frames and bytes a broadcast costs: `gossip`, `epidemic` and `flooding` where everybody is in range.

Simulated worlds, 32-byte payloads, one broadcast a second, 1 ms delay. `frames` counts transmissions (one to
all neighbours counts once), digests and requests included; sizes are by the size model, without the runtime's
beacons and seals. `runtime` counts the sealed frames of members in one process over each medium of
`benchmarks.rooms`. `contacts`: (node, message) pairs and bytes on the bus day and among the pedestrians,
without limits and with a bandwidth.

python -m benchmarks.dense --json            (--quick: small groups only; --contacts: the contact worlds too)
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.rooms import MEDIA, frames_per_broadcast
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.scenario import read_scenario

BROADCASTS = 20
SETTLED_S = 5
DISSEMINATIONS = ("gossip", "epidemic", "flooding")


def events(world: Mapping[str, Any], dissemination: str, script: Sequence[Any], end: str) -> pa.Table:
    """The log of a world in which the nodes of a script broadcast 32 bytes each."""
    sink = TableSink()
    run = Run(
        world={"kind": "point_to_point", "delay": "1ms", **world},
        workload={"script": list(script), "size": 32},
        protocol="causal_barrier",
        options={"dissemination": dissemination},
        seed=1,
        end=end,
        gauges="none",
    )
    carry_out(run, sink)
    return sink.events()


def costs(log: pa.Table, broadcasts: int, after_s: float = SETTLED_S) -> dict[str, float]:
    """Frames and bytes per broadcast behind an instant, and the latency to the last delivery."""
    log = log.filter(pc.greater_equal(log["at_us"], int(after_s * 1e6)))
    kind = log["kind"].cast(pa.string())
    sent = log.filter(pc.equal(kind, "sent"))
    born: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, int], int] = {}
    deliveries = 0
    chosen = log.filter(pc.is_in(kind, pa.array(["broadcast", "delivered"])))
    for row in chosen.select(["kind", "at_us", "message_source", "message_number"]).to_pylist():
        message = (row["message_source"], row["message_number"])
        if row["kind"] == "broadcast":
            born[message] = row["at_us"]
        else:
            last[message] = row["at_us"]
            deliveries += 1
    waits = sorted(last[message] - born[message] for message in born)
    return {
        "frames": len(sent) / broadcasts,
        "bytes": (pc.sum(sent["packet_bytes"]).as_py() or 0) / broadcasts,
        "deliveries": deliveries / broadcasts,
        "last_median_ms": waits[len(waits) // 2] / 1000,
        "last_worst_ms": waits[-1] / 1000,
    }


def one_a_second(nodes: int) -> list[dict[str, str]]:
    return [{"src": str(n % nodes), "at": f"{SETTLED_S + n}s"} for n in range(BROADCASTS)]


def clique(nodes: int, dissemination: str, loss: float) -> dict[str, float]:
    """One broadcast a second, everybody in range."""
    world = {"nodes": nodes, "loss": loss, "link_events": dissemination != "flooding"}
    log = events(world, dissemination, one_a_second(nodes), f"{SETTLED_S + BROADCASTS}s")
    return costs(log, BROADCASTS)


def chain(dissemination: str) -> dict[str, float]:
    """Ten radios in a row, each in range of the next one only."""
    world = {"kind": "flood", "grid": [10, 1], "spacing": 70.0, "reach": 88.0}
    log = events(world, dissemination, one_a_second(10), f"{SETTLED_S + BROADCASTS}s")
    return costs(log, BROADCASTS)


def idle(nodes: int, dissemination: str) -> float:
    """Frames per second of the whole group, a minute after the last broadcast."""
    script = [{"src": "0", "at": "1s"}]
    world = {"nodes": nodes, "link_events": dissemination != "flooding"}
    log = events(world, dissemination, script, "121s")
    late = log.filter(pc.greater_equal(log["at_us"], 61_000_000))
    return len(late.filter(pc.equal(late["kind"].cast(pa.string()), "sent"))) / 60


def back(nodes: int, dissemination: str, **how: Any) -> dict[str, float]:
    """A node is cut off while the others broadcast a thousand messages, and returns; `how`: the world."""
    script = [{"src": str(n % (nodes - 1)), "at": f"{1000 + 10 * n}ms"} for n in range(1000)]
    alone = {"start": "500ms", "end": "30s", "groups": [[str(nodes - 1)]]}
    world = {"nodes": nodes, "link_events": dissemination != "flooding", "partitions": [alone], **how}
    log = events(world, dissemination, script, "60s")
    behind = log.filter(pc.equal(log["node"].cast(pa.string()), str(nodes - 1)))
    delivered = behind.filter(pc.equal(behind["kind"].cast(pa.string()), "delivered"))
    late = log.filter(pc.greater_equal(log["at_us"], 30_000_000))
    sent = late.filter(pc.equal(late["kind"].cast(pa.string()), "sent"))
    return {
        "delivered": len(delivered),
        "seconds": (pc.max(delivered["at_us"]).as_py() - 30_000_000) / 1e6,
        "frames": len(sent),
        "bytes": pc.sum(sent["packet_bytes"]).as_py(),
        "messages": pc.sum(sent["messages_in_packet"]).as_py(),
    }


def contacts(scenario: str, dissemination: str, settings: Mapping[str, str]) -> tuple[set[Any], int]:
    """The (node, message) pairs that were delivered in a scenario of contacts, and the bytes sent."""
    sink = TableSink()
    options = {"medium": "links"} if dissemination == "gossip" else {}
    chosen = {"gauges": "none", "dissemination": dissemination, **options, **settings}
    carry_out(read_scenario(scenario, "delta_causal", 1, chosen), sink)
    log = sink.events()
    kind = log["kind"].cast(pa.string())
    delivered = log.filter(pc.equal(kind, "delivered"))
    pairs = zip(
        *(delivered[name].to_pylist() for name in ("node", "message_source", "message_number")), strict=True
    )
    return set(pairs), pc.sum(log.filter(pc.equal(kind, "sent"))["packet_bytes"]).as_py()


def compared(scenario: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """`gossip` against `epidemic` in one scenario of contacts."""
    pairs, size = contacts(scenario, "gossip", settings)
    epidemic, epidemic_size = contacts(scenario, "epidemic", settings)
    return {
        "same_pairs": pairs == epidemic,
        "pairs": {"gossip": len(pairs), "epidemic": len(epidemic)},
        "bytes": {"gossip": size, "epidemic": epidemic_size},
    }


def main() -> None:
    """Measures everything and prints it as JSON, or as one line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("--json", "--quick", "--contacts", "--runtime"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    sizes = (5, 10) if given.quick else (5, 10, 20, 40)
    result: dict[str, Any] = {
        name: {
            "clique": {n: clique(n, name, 0.0) for n in sizes},
            "clique_20_percent_loss": {n: clique(n, name, 0.2) for n in sizes} if name != "epidemic" else {},
            "idle_frames_per_s": {n: idle(n, name) for n in sizes},
            "chain_of_10": chain(name) if name != "epidemic" else {},
            "back_after_1000": back(10, name),
        }
        for name in DISSEMINATIONS
    }
    if given.contacts:
        result["contacts"] = {
            scenario: {
                "unlimited": compared(scenario, settings),
                "limited": compared(scenario, {**settings, "bandwidth": "20000"}),
            }
            for scenario, settings in {"city-bus": {}, "pedestrians": {"duration": "1h"}}.items()
        }
    if given.runtime:
        result["runtime"] = {
            medium: {
                name: {n: asyncio.run(frames_per_broadcast(n, name, medium)) for n in sizes}
                for name in ("gossip", "flooding")
            }
            for medium in MEDIA
        }
    print(json.dumps(result, indent=2) if given.json else result)


if __name__ == "__main__":
    main()
