"""The gauges' peaks are exact: they equal a recount from the event log, however rarely sizes are sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import pytest

from precede.core.compiling import is_compiled
from precede.core.peaks import Peaks, Sample
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.protocols import registry
from precede.protocols.guidec2021 import causal_barrier

MESH = {"kind": "point_to_point", "nodes": 8, "delay": "exponential(0.5)"}
EXTENSIBLE = ["unordered", "fifo", "vector_clock", "hash_dag"]
if not is_compiled(causal_barrier):
    EXTENSIBLE.append("causal_barrier")  # no interpreted class extends it where it is compiled
TALK = {"every": "exponential(0.4)", "until": "30s", "size": 10}


def tables_of(run: Run) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    sink = TableSink()
    carry_out(run, sink)
    return sink.events().to_pylist(), sink.gauges().to_pylist()


def recounted_peaks(events: list[dict[str, object]]) -> dict[str, int]:
    """The most messages that were received and not delivered, by node, between any two inputs."""
    pending: Counter[str] = Counter()
    peaks: dict[str, int] = {}
    for event in sorted(events, key=lambda event: (event["node"], event["step"])):
        node = str(event["node"])
        if event["kind"] in ("packet_received", "left", "crashed"):
            peaks[node] = max(peaks.get(node, 0), pending[node])
        elif event["kind"] == "received":
            pending[node] += 1
        elif event["kind"] == "delivered" and event["message_source"] != node:
            pending[node] -= 1
    return peaks


def peaks_in(gauges: list[dict[str, object]]) -> dict[str, int]:
    peaks: dict[str, int] = {}
    for row in gauges:
        if row["name"] == "pending":
            peaks[str(row["node"])] = max(peaks.get(str(row["node"]), 0), int(row["peak"]))
    return peaks


def test_peaks_equal_a_recount_from_the_log_with_one_sample_in_the_whole_run():
    run = Run(protocol="causal_barrier", seed=4, world=MESH, workload=TALK, gauges="1h")
    events, gauges = tables_of(run)
    recounted = recounted_peaks(events)
    assert max(recounted.values()) > 3
    assert peaks_in(gauges) == recounted


def test_a_node_that_goes_down_between_two_samples_still_has_its_peak():
    crash = {"crashes": [{"node": "1", "at": "9s"}]}
    run = Run(
        protocol="causal_barrier", seed=4, world=MESH, workload=TALK, faults=crash, end="30s", gauges="1h"
    )
    events, gauges = tables_of(run)
    assert recounted_peaks(events)["1"] > 0
    assert peaks_in(gauges) == recounted_peaks(events)


def test_the_log_does_not_depend_on_the_gauges():
    run = {"protocol": "causal_barrier", "seed": 4, "world": MESH, "workload": TALK}

    def rows(gauges: str) -> list[dict[str, object]]:
        events, _ = tables_of(Run(**run, gauges=gauges))
        return [{key: value for key, value in event.items() if key != "run_id"} for event in events]

    assert rows("1s") == rows("none")


def test_peaks_begin_anew_with_the_sizes_of_the_last_sample():
    peaks = Peaks()
    for pending in (1, 7, 3):
        peaks.note({"pending": pending})
    assert peaks.largest == {"pending": 7}
    assert peaks.sample() == Sample(("pending",), (3,), (7,))
    peaks.note({"pending": 2})
    assert peaks.largest == {"pending": 3}


@pytest.mark.parametrize("name", EXTENSIBLE)
@pytest.mark.parametrize("dissemination", ["direct", "epidemic"])
def test_counted_sizes_are_those_of_mappings(name: str, dissemination: str):
    entry = registry.find(name)

    class WithoutCounts(entry.ordering):  # type: ignore[misc, name-defined]
        def counted_sizes(self) -> None:
            return None

        def sizes(self) -> Mapping[str, int]:
            return super().counted_sizes().mapping()

    run = Run(
        protocol=name,
        options={"dissemination": dissemination},
        seed=4,
        world=MESH,
        workload=TALK,
        faults={"crashes": [{"node": "1", "at": "9s"}]},
        end="30s",
        gauges="2s",
    )
    sink, plain = TableSink(), TableSink()
    carry_out(run, sink)
    carry_out(run, plain, msgspec.structs.replace(entry, ordering=WithoutCounts))
    assert sink.gauges().equals(plain.gauges())
    assert sink.events().equals(plain.events())
    assert len(set(sink.gauges()["peak"].to_pylist())) > 3
