"""The size model of every packet (bytes, control bytes, control entries, messages), and its fields' ranges.

The stored results of the papers count these sizes, and nodes of other versions read these fields, so a change
here is a change of results or of the wire. After one that is meant, write the table anew:
`python -m tests.protocols.test_packet_sizes`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import inspect

from precede.core.messages import Packet
from precede.protocols import registry
from tests.hostile.packets import any_packet

TABLE = Path(__file__).with_name("packet_sizes.json")
DRAWN = 4
"""So many random packets of each kind."""
LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length")


def kinds() -> dict[str, type[Packet]]:
    """Every kind of packet of every protocol and dissemination, by its name."""
    entries = [registry.find(name) for name in registry.names()]
    layers = [registry.find_dissemination(name) for name in registry.disseminations()]
    found = [kind for entry in (*entries, *layers) for kind in entry.packets]
    return {f"{kind.__module__.removeprefix('precede.protocols.')}.{kind.__qualname__}": kind for kind in found}


def sizes(kind: type[Packet]) -> list[list[int]]:
    drawn = [any_packet(kind, Random(seed)) for seed in range(DRAWN)]
    return [[one.size_bytes, one.control_bytes, one.control_entries, one.messages] for one in drawn]


def ranges(declared: Any, path: str, depth: int = 0) -> Iterator[str]:
    """The limits of every number and list of a declared type, as text."""
    limits = [(name, getattr(declared, name, None)) for name in LIMITS]
    if any(limit is not None for _, limit in limits):
        yield " ".join([path, *(f"{name}={limit}" for name, limit in limits if limit is not None)])
    inner: list[tuple[str, Any]] = []
    for name in ("type", "item_type", "key_type", "value_type"):
        if hasattr(declared, name):
            inner.append((path if name == "type" else f"{path}.{name[0]}", getattr(declared, name)))
    inner += [(f"{path}.{place}", one) for place, one in enumerate(getattr(declared, "item_types", ()))]
    inner += [(f"{path}|{place}", one) for place, one in enumerate(getattr(declared, "types", ()))]
    for field in getattr(declared, "fields", ()):
        inner.append((f"{path}.{field.name}", field.type))
        if isinstance(field.default, bool | int | str | bytes | tuple | None):
            yield f"{path}.{field.name} default={field.default!r}"
    for below, one in inner if depth < 12 else ():
        yield from ranges(one, below, depth + 1)


def described(kind: type[Packet]) -> dict[str, Any]:
    declared = list(ranges(inspect.type_info(kind), ""))
    flags = {name: getattr(kind, name, False) for name in ("to_all", "aggregates")}
    return {"kind": kind.kind, **flags, "sizes": sizes(kind), "ranges": declared}


STORED: dict[str, Any] = json.loads(TABLE.read_text()) if TABLE.exists() else {}


def test_every_kind_of_packet_is_in_the_table() -> None:
    assert sorted(kinds()) == sorted(STORED)


@pytest.mark.parametrize("name", sorted(STORED))
def test_a_packet_has_the_sizes_of_its_model_and_the_ranges_of_the_wire(name: str) -> None:
    assert described(kinds()[name]) == STORED[name]


if __name__ == "__main__":
    rows = (f"{json.dumps(name)}: {json.dumps(described(kind))}" for name, kind in sorted(kinds().items()))
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
