"""Entries of the registry with something around their nodes, or with a part replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from precede.core.node import Context, Node
from precede.protocols import registry
from precede.protocols.options import option
from precede.protocols.registry import Entry


def flat_options(entry: Entry[Any], dissemination: str | None = None) -> type[Struct]:
    """One struct with all options of an entry, those of its dissemination included."""
    fields = {field.name: field for field in msgspec.structs.fields(entry.options)}
    if entry.ordering is not None:
        spread = dissemination or "direct"
        below = msgspec.structs.fields(registry.find_dissemination(spread).options)
        fields |= {field.name: field for field in below}
    declared: list[Any] = [(field.name, field.type, field.default) for field in fields.values()]
    if entry.ordering is not None:
        declared.append(("dissemination", Annotated[str, option("how messages spread")], spread))
    return msgspec.defstruct("FlatOptions", declared, frozen=True, kw_only=True)


def wrapped(
    entry: Entry[Any], wrap: Callable[[Node, Context[Any]], Node], dissemination: str | None = None
) -> Entry[Any]:
    """The entry with `wrap` around every node it builds."""

    def build(role: str, context: Context[Any]) -> Node:
        return wrap(registry.make_entry(entry, role, context), context)

    options = flat_options(entry, dissemination)
    return msgspec.structs.replace(entry, build=build, ordering=None, options=options)
