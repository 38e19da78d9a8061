"""Scenario files (docs/reference/scenario.md): from a name, a TOML file or a trace in the lake to a `Run`."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from precede.core.errors import BadInput
from precede.core.settings import Setting, settings_in
from precede.experiments.faults import FaultTable
from precede.experiments.keys import read_key, read_table
from precede.experiments.one_settings import is_one_settings, read_one_settings
from precede.experiments.own_modules import allow_own_modules
from precede.experiments.run import Run, kind_of
from precede.experiments.run_table import RunTable
from precede.experiments.tables import Table, read_toml
from precede.experiments.workload import WorkloadTable
from precede.experiments.worlds.kinds import WorldKind
from precede.lake.layout import DEFAULT_LAKE, Lake
from precede.lake.stored_contacts import stored_traces
from precede.protocols import registry

_LARGEST: Final = 1 << 20
_TABLES: Final = ("world", "workload", "run", "faults")


def builtin_names() -> list[str]:
    folder = files("precede.experiments") / "builtin"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def read_scenario(
    scenario: str,
    protocol: str | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    lake: str | Path = DEFAULT_LAKE,
) -> Run:
    """Read the run that a scenario describes. Raise `BadInput` if anything is unknown or wrong.

    The caller's protocol, seed and settings replace those of the file. If the caller names another protocol, it
    gets only those options of the file that it has.
    """
    allow_own_modules()
    if seed is not None and type(seed) is not int:
        raise BadInput(f"seed: expected a whole number, got {seed!r}")
    path = find_scenario(scenario, lake)
    unread: tuple[str, ...] = ()
    if path is not None and (settings_text := _settings_of_the_one(path)):
        text = ""
        tables, unread = read_one_settings(path, settings_text)
    else:
        tables, text = (_of_trace(scenario, lake), "") if path is None else read_toml(path)
    shown = str(path) if path is not None and Path(scenario).suffix else scenario
    base = Path().absolute() if path is None else path.parent
    for name in tables:
        if name not in _TABLES:
            raise BadInput(f"{shown}: unknown table [{name}] (known: {', '.join(_TABLES)})")
    written = {name: Table(tables.get(name, {}), name, shown, text, base) for name in _TABLES}
    written["run"].check(settings_in(RunTable))
    options = dict(read_key(RunTable, written["run"], "options"))
    own_protocol = read_key(RunTable, written["run"], "protocol")
    if protocol and protocol != own_protocol:
        its_own = _all_options(protocol, kind_of(written["world"]).name, options)
        options = {key: value for key, value in options.items() if key in its_own}
    if not protocol and own_protocol:
        _check_protocol(written["run"], own_protocol)
    _apply(written, options, settings or {}, protocol or own_protocol)
    kind = kind_of(written["world"])
    for name, keys in _keys_of(kind).items():
        written[name].check(keys)
    run = read_table(RunTable, written["run"])
    if not (protocol or run.protocol):
        raise written["run"].lacks("'protocol'")
    return Run(
        world=written["world"].data,
        workload=written["workload"].data,
        faults=written["faults"].data,
        protocol=protocol or run.protocol,
        options=_checked_options(protocol or run.protocol, kind.name, options, written["run"]),
        seed=run.seed if seed is None else seed,
        end=written["run"].data.get("end"),
        gauges=written["run"].data.get("gauges"),
        log=run.log,
        warmup=written["run"].data.get("warmup"),
        cooldown=written["run"].data.get("cooldown"),
        energy=run.energy,
        scenario=shown,
        base=str(base),
        unread=unread,
    )


def _settings_of_the_one(path: Path) -> str:
    """Return the text of a file if it is a settings file of The ONE, else an empty text."""
    if path.suffix == ".toml":
        return ""
    text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size < _LARGEST else ""
    return text if is_one_settings(text) else ""


def _keys_of(kind: WorldKind[Any]) -> dict[str, Mapping[str, Setting]]:
    """Return the keys of each table, for a world of this kind."""
    return {
        "world": settings_in(kind.keys),
        "workload": settings_in(WorkloadTable),
        "run": settings_in(RunTable),
        "faults": settings_in(FaultTable),
    }


def _check_protocol(table: Table, protocol: str) -> None:
    try:
        registry.find(protocol)
    except BadInput as error:
        raise table.wrong("protocol", str(error)) from None


def find_scenario(scenario: str, lake: str | Path = DEFAULT_LAKE) -> Path | None:
    """Return the file of a scenario; None for a trace in the lake. Raise `BadInput` if it is neither."""
    path = Path(scenario)
    if path.suffix == ".toml" or path.is_file():
        return path
    built_in = files("precede.experiments") / "builtin" / f"{scenario}.toml"
    if built_in.is_file():
        return Path(str(built_in))
    if scenario in stored_traces(Lake(lake)):
        return None
    from difflib import get_close_matches

    near = get_close_matches(scenario, builtin_names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"built in: {', '.join(builtin_names())}"
    raise BadInput(f"no scenario {scenario!r}: neither a file, built in, nor a trace in {lake} ({hint})")


def _of_trace(trace: str, lake: str | Path) -> dict[str, Any]:
    """Make the scenario of a trace in the lake; if it has no messages, each node sends one every 20min."""
    stored = Lake(lake)
    messages = stored.messages(trace)
    workload = {"every": "20min", "first": "20s", "size": 1000}
    return {
        "world": {"kind": "contacts", "trace": trace, "lake": stored.location},
        "workload": workload if messages is None else {"messages": messages},
    }


def _apply(
    written: Mapping[str, Table], options: dict[str, Any], settings: Mapping[str, Any], protocol: str
) -> None:
    """Apply the settings of `--set key=value` to the tables and options. Raise `BadInput` for an unknown key.

    A key is an option of the protocol, a `table.key`, or a key of the first table that has it.
    """
    kind = kind_of(written["world"])
    tables = _keys_of(kind)
    protocol_options = _all_options(protocol, kind.name, {**options, **settings})
    for name, value in settings.items():
        table, _, key = name.rpartition(".")
        if not table and (key in protocol_options or key == "dissemination"):
            options[key] = value
            continue
        table = table or next((table for table, keys in tables.items() if key in keys), "")
        if not table:
            keys_of_all = [*protocol_options, *(key for keys in tables.values() for key in keys)]
            from difflib import get_close_matches

            near = get_close_matches(key, keys_of_all, n=1)
            if not protocol:
                hint = f"did you mean {near[0]!r}?" if near else "name a --protocol to set its options"
                raise BadInput(f"--set {name}: not a scenario key, and no protocol is named ({hint})")
            hint = f"did you mean {near[0]!r}?" if near else f"options: {', '.join(protocol_options)}"
            raise BadInput(f"--set {name}: neither an option of {protocol} nor a scenario key ({hint})")
        if table not in written or key not in tables[table]:
            raise BadInput(f"--set {name}: no such key")
        written[table].data[key] = value


def _all_options(protocol: str, kind: str, options: Mapping[str, Any]) -> dict[str, Setting]:
    if not protocol:
        return {}
    entry = registry.find(protocol)
    usual = registry.usual_dissemination(kind)
    return registry.options_of_entry(entry, str(options.get("dissemination", usual)))


def _checked_options(protocol: str, kind: str, options: dict[str, Any], table: Table) -> dict[str, Any]:
    """Return the options as written, after checking them; durations need a unit."""
    entry, usual = registry.find(protocol), registry.usual_dissemination(kind)
    options_and_keys = _all_options(protocol, kind, options)
    for key, value in options.items():
        if (
            key in options_and_keys
            and options_and_keys[key].kind == "duration"
            and isinstance(value, (int, float))
        ):
            raise table.wrong("options", f"{key}: expected a duration such as '{value}s', got {value}")
    in_file = read_key(RunTable, table, "options")
    unchanged = {key: value for key, value in options.items() if key in in_file and in_file[key] == value}
    try:
        registry.read_options(entry, unchanged, usual)
    except BadInput as error:
        raise table.wrong("options", str(error)) from None
    registry.read_options(entry, options, usual)
    return options
