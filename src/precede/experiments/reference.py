"""The tables of keys in docs/reference/scenario.md, written from the structs that declare the keys.

`python -m precede.experiments.reference docs/reference/scenario.md` replaces all from the first table on.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from precede.core.settings import Setting, settings_in
from precede.experiments.faults import FaultTable
from precede.experiments.run_table import RunTable
from precede.experiments.workload import WorkloadTable
from precede.experiments.worlds.kinds import KINDS, find_kind

_BEGINNING: Final = "## `[world]` of kind"
_KINDS: Final = {
    "duration": "duration",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "text": "text",
    "other": "",
}


def scenario_page(page: str) -> str:
    """Return the page with its tables of keys written anew. The text before the first table stays."""
    return page[: page.index(_BEGINNING)] + "\n".join(_sections()) + "\n"


def _sections() -> Iterator[str]:
    for name in KINDS:
        kind = find_kind(name)
        yield from _section(f"{_BEGINNING} `{name}`: {kind.title}", kind.keys)
    yield from _section("## `[workload]`", WorkloadTable)
    yield from _section("## `[faults]`", FaultTable)
    yield from _section("## `[run]`", RunTable)
    yield "`precede protocols NAME` lists the options of a protocol."


def _section(title: str, struct: type[Struct]) -> Iterator[str]:
    yield from (title, "", "| key | value | default | meaning |", "| --- | --- | --- | --- |")
    for name, setting in settings_in(struct).items():
        if name != "kind":
            yield f"| `{name}` | {_values(setting)} | {_default(setting)} | {_meaning(setting)} |"
    yield ""


def _values(setting: Setting) -> str:
    """Return, as text, how a value of this setting is written and what its bounds are."""
    if setting.choices:
        return " or ".join(f"`{choice}`" for choice in setting.choices)
    bounds = setting.bounds()
    if setting.kind == "other" or setting.shape:
        return setting.shape or "number or list of names"
    return f"{_KINDS[setting.kind]}, {bounds}" if bounds else _KINDS[setting.kind]


def _default(setting: Setting) -> str:
    if setting.required:
        return "*needed*"
    return "" if setting.default in (None, "", (), {}) else f"`{setting.written_default()}`"


def _meaning(setting: Setting) -> str:
    if setting.item is None:
        return setting.help
    fields = ", ".join(f"`{name}` ({field.help})" for name, field in settings_in(setting.item).items())
    return f"{setting.help}: {fields}"


def main() -> None:
    path = Path(sys.argv[1])
    path.write_text(scenario_page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
