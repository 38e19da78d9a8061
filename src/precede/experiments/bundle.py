"""A run as a folder that can be carried out elsewhere: its scenario, every file it reads, and its results.

The run that `scenario.toml` describes has the same id as the original. `README.md` lists the commands, and the
digest that their result must have.
"""

import platform
import shutil
from collections.abc import Mapping
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from precede import __version__
from precede.core.errors import BadInput
from precede.eventlog.sinks import EVENTS, GAUGES
from precede.experiments.measuring import measure_folder
from precede.experiments.run import RUN_FILE, Run, carry_out_into
from precede.lake.layout import Lake, foreign_path
from precede.lake.storage import joined
from precede.lake.stored_contacts import stored_files
from precede.witness.verify import verify

SCENARIO: Final = "scenario.toml"
PACKAGES: Final = ("precede", "msgspec", "numpy", "pyarrow", "numba", "pyspark")


def write_bundle(run: Run, folder: Path, log: Path | None = None) -> dict[str, Any]:
    """Write a run and its results, verified and measured, to a folder; return what `bundle.json` holds.

    `log` is a folder with the run's event log, which is copied; without it the run is carried out now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    alone = with_its_files(run, folder)
    (folder / SCENARIO).write_text(scenario_text(alone), encoding="utf-8")
    if log is None:
        carry_out_into(run, folder)
    else:
        for name in (EVENTS, GAUGES, RUN_FILE):
            if (log / name).is_file():
                shutil.copyfile(log / name, folder / name)
    verdict = verify(folder)
    results = {
        "run_id": run.id,
        "seed": run.seed,
        "protocol": run.protocol,
        "verdict": {
            "order": verdict.order,
            "verdict": verdict.verdict,
            "violations": verdict.violations,
            "deliveries_checked": verdict.deliveries_checked,
        },
        "measures": measure_folder(folder),
        "versions": versions(),
        "sha256": {name: digest(folder / name) for name in (EVENTS, GAUGES)},
    }
    (folder / "bundle.json").write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    (folder / "README.md").write_text(_readme(run, results), encoding="utf-8")
    return results


def read_run(path: Path) -> Run:
    """Read the run that a `run.json` describes. Raise `BadInput` if the file describes none."""
    try:
        described = msgspec.json.decode(path.read_bytes())
        return msgspec.convert(described["run"], Run)
    except (OSError, KeyError, TypeError, msgspec.DecodeError) as error:
        raise BadInput(f"{path}: not a run ({error})") from error


def versions() -> dict[str, str]:
    """Return the versions of Python, of the system and of those `PACKAGES` that are installed."""
    installed = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in PACKAGES:
        try:
            installed[name] = __version__ if name == "precede" else metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def with_its_files(run: Run, folder: Path) -> Run:
    """Copy every file that the run reads to the folder; return the run with the new paths."""
    tables = {"world": dict(run.world), "workload": dict(run.workload)}
    for table in tables.values():
        for key, value in table.items():
            source = Path(run.base) / str(value)
            if isinstance(value, str) and run.base and source.is_file():
                shutil.copyfile(source, folder / source.name)
                table[key] = source.name
    if "trace" in run.world:
        lake = Lake(joined(run.base, run.world.get("lake", "lake")))
        range_m = run.world.get("range")
        stored = stored_files(lake, run.world["trace"], None if range_m is None else float(range_m))
        for stored_table, unit, path in stored:
            target = folder / "lake" / foreign_path(stored_table, unit)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        tables["world"]["lake"] = "lake"
    return msgspec.structs.replace(run, **tables)


def scenario_text(run: Run) -> str:
    """Return a run as a scenario file.

    >>> print(scenario_text(Run(world={"kind": "flood"}, workload={"until": "5s"}, protocol="tof", seed=3)))
    [world]
    kind = "flood"
    <BLANKLINE>
    [workload]
    until = "5s"
    <BLANKLINE>
    [run]
    protocol = "tof"
    options = {}
    seed = 3
    log = "full"
    <BLANKLINE>
    """
    settings: dict[str, Any] = {"protocol": run.protocol, "options": dict(run.options), "seed": run.seed}
    settings |= {"log": run.log} | {
        key: value for key, value in (("end", run.end), ("gauges", run.gauges)) if value is not None
    }
    tables = {"world": run.world, "workload": run.workload, "faults": run.faults, "run": settings}
    return "\n".join(
        f"[{name}]\n" + "".join(f"{_key(key)} = {_toml(value)}\n" for key, value in table.items())
        for name, table in tables.items()
        if table
    )


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else _toml(key)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items() if one is not None)
        return f"{{ {inside} }}" if inside else "{}"
    return "[" + ", ".join(_toml(one) for one in value) + "]"


def _readme(run: Run, results: Mapping[str, Any]) -> str:
    verdict = results["verdict"]
    packages = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return f"""# Run {results["run_id"]}

Protocol `{run.protocol}`, seed {run.seed}. One seed is one world: scenario and seed give one event log.

| file | what it is |
| --- | --- |
| `{SCENARIO}` | the whole run; every file it reads is in this folder |
| `{EVENTS}`, `{GAUGES}` | its event log, and the sizes of registries and buffers over time |
| `bundle.json` | verdict, measures, versions, SHA-256 of the log |

Made with {packages}.

## Run it again

    pip install 'precede[cli,verify]=={results["versions"]["precede"]}'
    precede simulate {SCENARIO} --lake lake --out again
    precede verify again
    sha256sum again/{EVENTS} {EVENTS}

`precede verify` must say that the order `{verdict["order"]}` {verdict["verdict"]}
({verdict["violations"]} violations, {verdict["deliveries_checked"]} deliveries). With the versions above both
digests are {results["sha256"][EVENTS]}.
"""
