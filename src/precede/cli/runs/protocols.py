"""`precede protocols`: what is there, with paper, order and network."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def command(
    name: Annotated[str | None, typer.Argument(help="one protocol, with its options")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """List the protocols: the order each promises, the worlds it runs in, its paper.

    \b
    Example:
      precede protocols
      precede protocols vector_clock
    """
    from precede.protocols import registry

    entries = [registry.find(name)] if name else [registry.find(known) for known in registry.names()]
    if as_json:
        print(json.dumps([_described(entry) for entry in entries], indent=2))
    elif name:
        print(_page(entries[0]))
    else:
        width = max(len(entry.name) for entry in entries)
        for entry in entries:
            print(f"{entry.name:<{width}}  {entry.order:<9}  {', '.join(entry.worlds)}")
            print(f"{'':<{width}}  {entry.title}; {entry.paper}")
        print("\nprecede protocols NAME shows a protocol's options.")


def _described(entry: object) -> dict[str, object]:
    import msgspec

    from precede.protocols.registry import Entry, options_of_entry

    assert isinstance(entry, Entry)
    return {
        "name": entry.name,
        "title": entry.title,
        "paper": entry.paper,
        "order": entry.order,
        "worlds": list(entry.worlds),
        "roles": list(entry.roles),
        "options": {key: msgspec.to_builtins(option) for key, option in options_of_entry(entry).items()},
    }


def _page(entry: object) -> str:
    from precede.core.instants import format_duration
    from precede.protocols.registry import Entry, options_of_entry

    assert isinstance(entry, Entry)
    lines = [
        f"{entry.name}: {entry.title}",
        f"  paper   {entry.paper}",
        f"  order   {entry.order}",
        f"  worlds  {', '.join(entry.worlds)}",
        f"  roles   {', '.join(entry.roles)}",
        "  options",
    ]
    for key, option in options_of_entry(entry).items():
        default = option.default
        shown = format_duration(default) if option.kind == "duration" and default is not None else default
        choices = f" [{' | '.join(option.choices)}]" if option.choices else ""
        lines.append(f"    {key} = {shown}: {option.help}{choices}")
    return "\n".join(lines)
