"""`vcube` as the registry knows it: its options and the node they make (vcube2018)."""

from __future__ import annotations

from typing import Final

from precede.core.instants import MILLISECOND, SECOND
from precede.core.node import Context, Node
from precede.protocols.registry import Entry, Option
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.view import PACKETS


def build(role: str, context: Context) -> Node:
    return DiagnosedVCubeNode(context) if context.options["diagnosis"] else VCubeNode(context)


ENTRY: Final = Entry(
    name="vcube",
    title="causal broadcast over one tree per source, with aggregation",
    paper="vcube2018",
    order="causal",
    worlds=("switched", "point_to_point"),
    options={
        "aggregation": Option("bool", True, "hold what a child cannot deliver yet; send it with what it lacks"),
        "unpack": Option(
            "choice", "insertion", "in which order a packet's messages are taken", ("insertion", "causal")
        ),
        "tree": Option(
            "choice", "multiple", "one tree per source, or one rooted at node 0", ("multiple", "single")
        ),
        "mtu": Option("int", 1500, "bytes of the largest packet that several messages share"),
        "diagnosis": Option("bool", False, "test each other; survive crashes, let nodes join and leave"),
        "test_every": Option(
            "duration", 500 * MILLISECOND, "how often a node tests the first of each cluster", least=MILLISECOND
        ),
        "test_timeout": Option(
            "duration", SECOND, "no answer by then is a crash: more than two packets fly", least=MILLISECOND
        ),
        "compression": Option("bool", True, "count only vector entries changed since the previous broadcast"),
    },
    build=build,
    packets=PACKETS,
)
