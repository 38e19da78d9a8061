"""Scenario files (DESIGN section 6): from a name, a TOML file or a trace in the lake to a `Run`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput
from precede.experiments.run import RUN_KEYS, Run
from precede.experiments.tables import Table, read_toml
from precede.experiments.workload_and_faults import FAULT_KEYS, WORKLOAD_KEYS
from precede.experiments.worlds.kinds import find_kind
from precede.lake.layout import Lake
from precede.lake.stored_contacts import stored_traces
from precede.protocols import registry
from precede.protocols.options import Option

_TABLES: Final = ("world", "workload", "run", "faults")


def builtin_names() -> list[str]:
    """The scenarios that come with the package."""
    folder = files("precede.experiments") / "builtin"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def read_scenario(
    scenario: str,
    protocol: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    lake: Path = Path("lake"),
) -> Run:
    """The run that a scenario describes, with the caller's protocol, seed and settings in place of its own.

    Of the scenario's own options another protocol gets those that it has.
    """
    if seed is not None and type(seed) is not int:
        raise BadInput(f"seed: a whole number is wanted, not {seed!r}")
    path = find_scenario(scenario, lake)
    tables, text = (_of_trace(scenario, lake), "") if path is None else read_toml(path)
    shown = str(path) if path is not None and Path(scenario).suffix else scenario
    base = Path().absolute() if path is None else path.parent
    for name in tables:
        if name not in _TABLES:
            raise BadInput(f"{shown}: unknown table [{name}] (known: {', '.join(_TABLES)})")
    read = {name: Table(tables.get(name, {}), name, shown, text, base) for name in _TABLES}
    read["run"].check(RUN_KEYS)
    options = _written_options(read["run"])
    if protocol and protocol != read["run"].data.get("protocol"):
        its_own = _all_options(protocol, read["world"].text("kind"), options)
        options = {key: value for key, value in options.items() if key in its_own}
    if not protocol and read["run"].has("protocol"):
        _known_protocol(read["run"])
    _apply(read, options, settings or {}, protocol or str(read["run"].data.get("protocol", "")))
    name = protocol or read["run"].text("protocol")
    kind = find_kind(read["world"].text("kind"))
    for table, known in (
        ("world", kind.keys),
        ("workload", WORKLOAD_KEYS),
        ("faults", FAULT_KEYS),
        ("run", RUN_KEYS),
    ):
        read[table].check(known)
    return Run(
        world=read["world"].data,
        workload=read["workload"].data,
        faults=read["faults"].data,
        protocol=name,
        options=_known_options(name, kind.name, options, read["run"]),
        seed=seed if seed is not None else read["run"].whole("seed", 1),
        end=_written_time(read["run"], "end"),
        gauges=_written_time(read["run"], "gauges"),
        log=read["run"].text("log", "full"),
        scenario=shown,
        base=str(base),
    )


def _written_options(table: Table) -> dict[str, Any]:
    options = table.raw("options", {})
    if not isinstance(options, dict):
        raise table.wrong("options", f'a table is wanted ({{ lifetime = "20min" }}), not {options!r}')
    return dict(options)


def _known_protocol(table: Table) -> None:
    try:
        registry.find(table.text("protocol"))
    except BadInput as error:
        raise table.wrong("protocol", str(error)) from None


def _written_time(table: Table, key: str) -> str | None:
    """As written, but only what can be read."""
    if table.has(key) and table.text(key) != "none":
        table.duration(key)
    return table.text(key) if table.has(key) else None


def find_scenario(scenario: str, lake: Path = Path("lake")) -> Path | None:
    """The file behind a name; None for a trace in the lake."""
    path = Path(scenario)
    if path.suffix == ".toml" or path.is_file():
        return path
    built_in = files("precede.experiments") / "builtin" / f"{scenario}.toml"
    if built_in.is_file():
        return Path(str(built_in))
    if scenario in stored_traces(Lake(lake)):
        return None
    near = get_close_matches(scenario, builtin_names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"built in: {', '.join(builtin_names())}"
    raise BadInput(f"no scenario {scenario!r}: neither a file, built in, nor a trace in {lake} ({hint})")


def _of_trace(trace: str, lake: Path) -> dict[str, Any]:
    """What a trace in the lake stands for: its contacts, and the messages that came with it or some every now
    and then."""
    messages = Lake(lake).workload(trace)
    workload = {"every": "20min", "first": "20s", "size": 1000}
    return {
        "world": {"kind": "contacts", "trace": trace, "lake": str(lake.absolute())},
        "workload": {"messages": str(messages)} if messages.is_file() else workload,
    }


def _apply(
    read: Mapping[str, Table], options: dict[str, Any], settings: Mapping[str, Any], protocol: str
) -> None:
    """`--set key=value`: an option of the protocol, or `table.key`, or a key that one table knows."""
    kind = find_kind(read["world"].text("kind"))
    known: dict[str, Mapping[str, Any]] = {
        "world": kind.keys,
        "workload": WORKLOAD_KEYS,
        "run": RUN_KEYS,
        "faults": FAULT_KEYS,
    }
    protocol_options = _all_options(protocol, kind.name, {**options, **settings})
    for written, value in settings.items():
        table, _, key = written.rpartition(".")
        if not table and (key in protocol_options or key == "dissemination"):
            options[key] = value
            continue
        if not table:
            homes = [name for name, keys in known.items() if key in keys]
            if not homes:
                everything = [*protocol_options, *(key for keys in known.values() for key in keys)]
                near = get_close_matches(key, everything, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"options: {', '.join(protocol_options)}"
                raise BadInput(f"--set {written}: neither an option of {protocol} nor a scenario key ({hint})")
            table = homes[0]
        if table not in read or key not in known[table]:
            raise BadInput(f"--set {written}: no such key")
        read[table].data[key] = value


def _all_options(protocol: str, kind: str, options: Mapping[str, Any]) -> dict[str, Option]:
    if not protocol:
        return {}
    entry = registry.find(protocol)
    usual = registry.usual_dissemination(kind)
    return registry.options_of_entry(entry, str(options.get("dissemination", usual)))


def _known_options(protocol: str, kind: str, options: dict[str, Any], table: Table) -> dict[str, Any]:
    """As written, but a bare number where a duration is wanted is an error, not microseconds."""
    entry, usual = registry.find(protocol), registry.usual_dissemination(kind)
    known = _all_options(protocol, kind, options)
    for key, value in options.items():
        if key in known and known[key].kind == "duration" and isinstance(value, (int, float)):
            raise table.wrong("options", f'{key} = {value}: a duration is wanted ("{value}s"?)')
    try:
        registry.read_options(entry, _in_file(table, options), usual)
    except BadInput as error:
        raise table.wrong("options", str(error)) from None
    registry.read_options(entry, options, usual)
    return options


def _in_file(table: Table, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that stand in the scenario as they are."""
    written = table.raw("options", {})
    return {key: value for key, value in options.items() if key in written and written[key] == value}
