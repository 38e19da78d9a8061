"""Writes docs/reference/api.md, the reference of the public interface, from the docstrings of `precede`.

    python docs/reference/write_api.py

Each entry has its signature, its description and its example with the output. `tests/docs/test_api_page.py`
runs the examples and checks that the page is current.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import precede
import precede.spark

PAGE = Path(__file__).with_name("api.md")
WIDTH = 100
SECTIONS = {
    "Functions": ("join", "open_group", "simulate", "verify", "read_sweep"),
    "A group": (
        "Group",
        "Topic",
        "BlockingGroup",
        "BlockingTopic",
        "Order",
        "Delivered",
        "History",
        "Retention",
        "Snapshot",
        "Arrival",
        "Waiting",
        "GroupEvent",
        "GroupWarning",
        "MessageId",
        "SignedRoster",
        "Equivocation",
    ),
    "Transports": ("Transport", "UdpTransport", "TcpTransport", "WebSocketTransport", "CombinedTransport"),
    "Guests of a total order": ("GuestGateway", "SignedPayloads"),
    "Simulations and verdicts": ("Simulation", "Sweep", "Verdict", "Violation"),
    "Errors": ("BadInput", "Refused", "NotYet", "Missed", "StoreFailed", "Unavailable"),
}
ORDER = """The orders that `join` offers ([which one?](../guides/which-order.md)).

>>> import precede
>>> order: precede.Order = "causal"
>>> precede.join("picnic", "ana", key=None, order=order).name
'ana'
"""
INTERNAL = {"closed", "crash", "driver", "error_received", "heard", "links", "opened"}
HEAD = """# The public interface

*Written by `python docs/reference/write_api.py` from the docstrings.*

`import precede` gives these names. They are typed (`py.typed`): a type checker reports a misspelt keyword, a
wrong order name or a missing `await`. Every other module of the package is internal and may change in any
release.
"""

SPARK = """## On Spark

`import precede.spark` gives functions from DataFrames to DataFrames ([guide](../guides/pipeline.md)). They use
the session of the DataFrame, which the examples call `session`, and run nothing before an action.
"""


def entries() -> Iterator[tuple[str, str, Any]]:
    """Every entry of the page: its section, its name and the object."""
    for section, names in SECTIONS.items():
        for name in names:
            yield section, name, getattr(precede, name)


def spark_entries() -> Iterator[tuple[str, Any]]:
    """The functions of `precede.spark`; their examples need a Spark session called `session`."""
    for name in ("simulate", "verify", "measure", "group", "compare", "segments", "contacts"):
        yield name, getattr(precede.spark, name)


def page() -> str:
    """The whole page."""
    parts, last = [HEAD], ""
    for section, name, entry in entries():
        if section != last:
            parts.append(f"## {section}\n")
            last = section
        parts.append(describe(name, entry))
    parts.append(SPARK)
    parts += [describe(f"precede.spark.{name}", entry) for name, entry in spark_entries()]
    return "\n".join(parts)


def describe(name: str, entry: Any) -> str:
    """One entry: signature, description, example, and the methods of a class."""
    text, example = split(docstring(name, entry))
    parts = [f"### `{name}`\n", f"```python norun\n{signature(name, entry)}\n```\n", text]
    if methods := list(public_methods(entry)):
        parts.append("| member | meaning |\n| --- | --- |\n" + "\n".join(methods) + "\n")
    parts.append(f"```pycon\n{example}\n```\n")
    return "\n".join(parts)


def docstring(name: str, entry: Any) -> str:
    """The cleaned docstring of an entry."""
    return inspect.cleandoc(ORDER if name == "Order" else entry.__doc__ or "")


def split(text: str) -> tuple[str, str]:
    """A docstring's description and its example, which is everything from the first prompt on."""
    description, prompt, example = text.partition(">>> ")
    return description.strip() + "\n", (prompt + example).strip()


def signature(name: str, entry: Any) -> str:
    """How an entry is called, in as many lines as it needs."""
    if name == "Order":
        return f"Order = {entry!s}".replace("typing.", "").replace("'", '"')
    if inspect.isclass(entry):
        if issubclass(entry, Exception):
            return f"class {name}({entry.__bases__[0].__name__})"
        if issubclass(entry, msgspec.Struct):
            fields = [
                f"    {field.name}: {written(entry, field.name)}" for field in msgspec.structs.fields(entry)
            ]
            return "\n".join([f"class {name}:", *fields])
        if name in ("Group", "Simulation", "Transport"):
            return f"class {name}"
        return folded(f"class {name}", inspect.signature(entry.__init__), skip_self=True)
    return folded(f"def {name}", inspect.signature(entry), skip_self=False)


def written(entry: Any, field: str) -> str:
    """The type of a field as it is written in the source."""
    for cls in entry.__mro__:
        if field in (annotations := inspect.get_annotations(cls)):
            return str(annotations[field])
    return "Any"


def folded(start: str, parameters: inspect.Signature, skip_self: bool) -> str:
    """A signature on one line if it fits, else with one parameter a line."""
    shown = [one for place, one in enumerate(parameters.parameters.values()) if place or not skip_self]
    items: list[str] = []
    for parameter in shown:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in items:
            items.append("*")
        items.append(shown_parameter(parameter))
    result = parameters.return_annotation
    arrow = "" if skip_self or result is parameters.empty else f" -> {result}"
    line = f"{start}({', '.join(items)}){arrow}"
    if len(line) <= WIDTH:
        return line
    return f"{start}(\n" + "".join(f"    {item},\n" for item in items) + f"){arrow}"


def shown_parameter(parameter: inspect.Parameter) -> str:
    """A parameter as it is written in the source."""
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}".replace("'", '"')
    return f"{stars}{parameter.name}: {parameter.annotation}{default}"


def public_methods(entry: Any) -> Iterator[str]:
    """A table row for each public method and property that the class itself defines."""
    if not inspect.isclass(entry) or issubclass(entry, Exception):
        return
    for name, member in vars(entry).items():
        if name.startswith("_") or name in INTERNAL or not getattr(member, "__doc__", None):
            continue
        if isinstance(member, property):
            called = f"`{name}`"
        elif inspect.isfunction(member):
            parameters = inspect.signature(member)
            arguments = ", ".join(map(shown_parameter, list(parameters.parameters.values())[1:]))
            mark = "await " if inspect.iscoroutinefunction(member) else ""
            called = f"`{mark}{name}({arguments}) -> {parameters.return_annotation}`".replace("|", "\\|")
        else:
            continue
        first = inspect.cleandoc(member.__doc__).partition("\n\n")[0].replace("\n", " ")
        yield f"| {called} | {first} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(print(f"{PAGE}: {len(list(entries()))} entries"))
