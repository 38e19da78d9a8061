"""`precede protocols`: every protocol with its paper, order and worlds; every option of one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from precede.cli.parameters import Argument, Option

if TYPE_CHECKING:
    from precede.core.settings import Setting
    from precede.protocols.registry import Entry


def command(
    name: Annotated[str | None, Argument(help="one protocol, with its options")] = None,
    as_json: Annotated[bool, Option("--json", help="print as JSON")] = False,
) -> None:
    """List the protocols: the order each promises, the worlds it runs in, its paper.

    \b
    Example:
      precede protocols
      precede protocols vector_clock
    """
    from precede.protocols import registry

    entries = [registry.find(name)] if name else [registry.find(key) for key in registry.names()]
    if as_json:
        print(json.dumps([_described(entry) for entry in entries], indent=2))
    elif name:
        print("\n".join(_page(entries[0])))
    else:
        width = max(len(entry.name) for entry in entries)
        for entry in entries:
            print(f"{entry.name:<{width}}  {entry.order:<9}  {', '.join(entry.worlds)}")
            paper = entry.paper if entry.paper.startswith("(") else f"[{entry.paper}]"
            print(f"{'':<{width}}  {entry.title} {paper}")
        print("\nprecede protocols NAME shows a protocol's options.")


def _described(entry: Entry[Any]) -> dict[str, Any]:
    from precede.protocols.registry import disseminations, option_groups, options_of_entry

    over = {name: _plain(options) for name, options in option_groups(entry).items() if name}
    return {
        "name": entry.name,
        "title": entry.title,
        "paper": entry.paper,
        "order": entry.order,
        "worlds": list(entry.worlds),
        "roles": list(entry.roles),
        "options": _plain(options_of_entry(entry, listed=disseminations())),
        "options_over": over,
    }


def _plain(options: Mapping[str, Setting]) -> dict[str, Any]:
    return {
        key: {
            "kind": option.kind,
            "default": option.default,
            "help": option.help,
            "choices": list(option.choices),
            "least": option.least,
            "most": None if option.most == float("inf") else option.most,
        }
        for key, option in options.items()
    }


def _page(entry: Entry[Any]) -> Iterator[str]:
    from precede.protocols.registry import option_groups, usual_dissemination

    yield f"{entry.name}: {entry.title}"
    yield f"  paper   {entry.paper}"
    yield f"  order   {entry.order}"
    yield f"  worlds  {', '.join(entry.worlds)}"
    yield f"  roles   {', '.join(entry.roles)}"
    for dissemination, options in option_groups(entry).items():
        worlds = [world for world in entry.worlds if usual_dissemination(world) == dissemination]
        usual = f" (the usual one in {' and '.join(worlds)} worlds)" if worlds else ""
        yield f"  options over dissemination = {dissemination}{usual}" if dissemination else "  options"
        for key, option in options.items():
            bounds = f" [{option.bounds()}]" if option.bounds() else ""
            yield f"    {key} = {option.written_default()}: {option.help}{bounds}"
