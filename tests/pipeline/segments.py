"""Runs as segments, as nodes write them: correct ones, and ones with planted faults."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from precede.eventlog.schema import event_schema
from precede.eventlog.segments import SegmentSink


def make_run(run_id, nodes=6, messages=60, faults=(), seed=1):
    """The rows of every node; each message is delivered everywhere before the next one is broadcast.

    `faults` are kinds: "causal" swaps two deliveries at the last node, "duplicate" repeats one at node 1.
    """
    random = Random(seed)
    names = [f"n{node}" for node in range(nodes)]
    rows = {name: [("started", None)] for name in names}
    counts = dict.fromkeys(names, 0)
    for _ in range(messages):
        source = random.choice(names[:-1])
        counts[source] += 1
        rows[source] += [("broadcast", (source, counts[source])), ("sent", None)]
        for name in names:
            rows[name].append(("delivered", (source, counts[source])))
    if "causal" in faults:
        own = rows[names[-1]]
        own[11], own[12] = own[12], own[11]
    if "duplicate" in faults:
        rows[names[1]].append(next(row for row in rows[names[1]] if row[0] == "delivered"))
    return {
        name: [event_row(run_id, name, step, *row) for step, row in enumerate(own)]
        for name, own in rows.items()
    }


def event_row(run_id, node, step, kind, message):
    row = dict.fromkeys(event_schema().names)
    row |= {
        "run_id": run_id,
        "node": node,
        "incarnation": 0,
        "step": step,
        "at_us": 0,
        "clock_us": 0,
        "kind": kind,
    }
    if message is not None:
        row |= {"message_source": message[0], "message_incarnation": 0, "message_number": message[1]}
    return row


def pieces(run, size, random):
    """Segments of at most `size` rows of one node, in random order, some of them twice."""
    cut = [(name, own[at : at + size]) for name, own in run.items() for at in range(0, len(own), size)]
    cut += random.sample(cut, len(cut) // 4)
    random.shuffle(cut)
    return cut


class Writer:
    """Writes segments of all nodes into one folder, numbered by node."""

    def __init__(self, folder):
        self.folder = folder
        self.sinks = {}

    def write(self, name, rows):
        if name not in self.sinks:
            self.sinks[name] = SegmentSink(self.folder, name)
        (block,) = pa.Table.from_pylist(rows, event_schema()).combine_chunks().to_batches()
        self.sinks[name].write_events(block)
