"""A sweep's specification: from a TOML file to every run it asks for, with ids that never change.

    [sweep]
    name = "buses"                          # default: the file's name
    scenario = ["city-bus", "mine.toml"]    # names, or files relative to this one
    protocol = ["causal_barrier", "delta_causal"]
    seeds = 20                              # 1 .. 20; or "5-9"; or [3, 17]
    claims = "claims.toml"                  # optional: hold the measures against these (`pipeline.compare`)
    [set]                                   # for every run: an option, or table.key of the scenario
    "run.log" = "messages"
    [grid]                                  # every combination of these
    "workload.size" = [100, 1000]
    [grid.delta_causal]                     # and of these, for this protocol
    lifetime = ["5min", "20min"]

A run's id is a hash of everything that describes it, so a run is the same run whatever sweep asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.run import Run
from precede.experiments.scenario import read_scenario
from precede.experiments.tables import Table, read_toml

_TABLES: Final = ("sweep", "set", "grid")
_KEYS: Final = ("name", "scenario", "protocol", "seeds", "claims")
_NAME: Final = re.compile(r"[^\W_][\w.+-]*")
_RANGE: Final = re.compile(r"\s*(\d+)\s*(?:-|\.\.)\s*(\d+)\s*")
MAX_RUNS: Final = 1_000_000


class Point(Struct, frozen=True):
    """One run of a grid, with what the grid varied to make it (the seed aside)."""

    id: str
    run: Run
    varied: Mapping[str, Any]


class Grid(Struct, frozen=True):
    """Everything a sweep asks for, each run once."""

    name: str
    points: tuple[Point, ...]
    claims: str | None = None


def read_grid(path: Path, lake: Path | None = None) -> Grid:
    """A sweep's specification; what is wrong in it is said with file, line and cause.

    A scenario that names a trace, but no lake, finds it in `lake`.
    """
    tables, text = read_toml(path)
    for name in tables:
        if name not in _TABLES:
            raise BadInput(f"{path}: unknown table [{name}] (known: {', '.join(_TABLES)})")
    sweep = Table(tables.get("sweep", {}), "sweep", str(path), text, path.parent)
    sweep.check(_KEYS)
    name = sweep.text("name", path.stem)
    if not _NAME.fullmatch(name):
        raise sweep.wrong("name", f"not a name: {name!r} (letters, digits and .+-_)")
    protocols = _several(sweep, "protocol")
    fixed, varied = tables.get("set", {}), Table(tables.get("grid", {}), "grid", str(path), text)
    scenarios, seeds = _several(sweep, "scenario"), _seeds(sweep)
    cells = [
        (protocol, settings)
        for protocol in protocols
        for settings in _combinations(varied, protocol, protocols)
    ]
    if len(scenarios) * len(cells) * len(seeds) > MAX_RUNS:
        raise BadInput(f"{path}: {len(scenarios) * len(cells) * len(seeds):,} runs are more than {MAX_RUNS:,}")
    points: dict[str, Point] = {}
    for scenario, (protocol, settings) in product(scenarios, cells):
        try:
            first = _run(path.parent, lake, scenario, protocol, {**fixed, **settings})
        except BadInput as error:
            raise BadInput(f"{path}: {scenario} with {protocol}: {error}") from error
        for seed in seeds:
            run = msgspec.structs.replace(first, seed=seed)
            run_id = run.id
            points.setdefault(run_id, Point(run_id, run, settings))
    claims = str(sweep.path("claims").absolute()) if sweep.has("claims") else None
    return Grid(name, tuple(points.values()), claims)


def _run(folder: Path, lake: Path | None, scenario: str, protocol: str, settings: Mapping[str, Any]) -> Run:
    """The run as any worker can carry it out: with absolute paths."""
    beside = folder / scenario
    run = read_scenario(
        str(beside) if beside.is_file() else scenario, protocol, settings=settings, lake=lake or Path("lake")
    )
    world = dict(run.world)
    if "trace" in world and "lake" not in world and lake is not None:
        world["lake"] = str(lake.absolute())
    base = str(Path(run.base).absolute())
    return msgspec.structs.replace(run, base=base, scenario=scenario, world=world)


def _several(sweep: Table, key: str) -> list[str]:
    """One text or a list of them."""
    if key not in sweep.data:
        raise BadInput(f"{sweep.file}: [sweep] needs {key!r}")
    value = sweep.data[key]
    texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
    if not texts or (isinstance(value, list) and len(texts) != len(value)):
        raise sweep.wrong(key, f"a text or a list of texts is wanted, not {value!r}")
    return texts


def _seeds(sweep: Table) -> Sequence[int]:
    """`20`, `"5-9"` or `[3, 17]`."""
    value = sweep.data.get("seeds", 1)
    written = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if written and int(written[1]) <= int(written[2]):
        return range(int(written[1]), int(written[2]) + 1)
    if isinstance(value, list) and value and all(type(seed) is int and seed >= 0 for seed in value):
        return list(dict.fromkeys(value))
    if type(value) is int and value >= 1:
        return range(1, value + 1)
    raise sweep.wrong("seeds", f'{value!r}: a count, a range "5-9" or a list of whole numbers is wanted')


def _combinations(varied: Table, protocol: str, protocols: list[str]) -> Iterator[dict[str, Any]]:
    """Every combination of what the grid varies for all protocols and for this one."""
    axes: dict[str, list[Any]] = {}
    own: dict[str, list[Any]] = {}
    for key, value in varied.data.items():
        if isinstance(value, dict):
            if key not in protocols:
                raise varied.wrong(key, f"no such protocol in this sweep (it has {', '.join(protocols)})")
            own |= value if key == protocol else {}
        else:
            axes[key] = value
    axes |= own
    for key, value in axes.items():
        if not isinstance(value, list) or not value:
            raise varied.wrong(key, f"a list of values is wanted, not {value!r}")
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
