"""`vcube` as the registry knows it: its options and the node they make (vcube2018)."""

from typing import Final

from precede.core.node import Context, Node
from precede.protocols.registry import Entry
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import PACKETS


def build(role: str, context: Context[VCubeOptions]) -> Node:
    return DiagnosedVCubeNode(context) if context.options.diagnosis else VCubeNode(context)


ENTRY: Final = Entry(
    name="vcube",
    title="causal broadcast over one tree per source, with aggregation",
    paper="vcube2018",
    order="causal",
    worlds=("switched", "point_to_point"),
    options=VCubeOptions,
    build=build,
    packets=PACKETS,
)
