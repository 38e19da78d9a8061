"""Sweeps: from a TOML file to every run it describes.

    [sweep]
    name = "buses"                          # default: the file's name
    scenario = ["city-bus", "mine.toml"]    # names, or files relative to this one
    protocol = ["causal_barrier", "delta_causal"]
    seeds = 20                              # 1 .. 20; or "5-9"; or [3, 17]
    claims = "claims.toml"                  # optional: compare the measures with these
    [set]                                   # for every run: an option, or table.key of the scenario
    "run.log" = "messages"
    [grid]                                  # every combination of these
    "workload.size" = [100, 1000]
    [grid.delta_causal]                     # and of these, for this protocol
    lifetime = ["5min", "20min"]

The id of a run is a hash of its description: a run that two sweeps describe is the same run.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.keys import input_file, key, read_table
from precede.experiments.run import Run
from precede.experiments.scenario import read_scenario
from precede.experiments.tables import Table, read_toml
from precede.lake.layout import DEFAULT_LAKE
from precede.lake.storage import joined

_TABLES: Final = ("sweep", "set", "grid")
_NAME: Final = re.compile(r"[^\W_][\w.+-]*")
_RANGE: Final = re.compile(r"\s*(\d+)\s*(?:-|\.\.)\s*(\d+)\s*")
MAX_RUNS: Final = 1_000_000


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadInput(f"not a name: {value!r} (letters, digits and .+-_)")
    return value


def _several(value: Any) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"expected text or a list of texts, got {value!r}")
    return tuple(texts)


def _seeds(value: Any) -> Sequence[int]:
    ends = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if ends and int(ends[1]) <= int(ends[2]):
        return range(int(ends[1]), int(ends[2]) + 1)
    if isinstance(value, list) and value and all(type(seed) is int and seed >= 0 for seed in value):
        return list(dict.fromkeys(value))
    if type(value) is int and value >= 1:
        return range(1, value + 1)
    raise ValueError(f'expected a count, a range "5-9" or a list of whole numbers, got {value!r}')


class SweepTable(Struct, frozen=True, kw_only=True):
    """The keys of `[sweep]`."""

    name: Annotated[str | None, key("name of the sweep; none: the file's name", read=_name)] = None
    scenario: Annotated[tuple[str, ...], key("names, or files relative to this one", read=_several)]
    protocol: Annotated[tuple[str, ...], key("names of protocols", read=_several)]
    seeds: Annotated[Sequence[int], key('a count, a range "5-9" or a list', read=_seeds)] = (1,)
    claims: Annotated[Path | None, input_file("claims that the measures are compared with")] = None


class Point(Struct, frozen=True):
    """One run of a grid, with the settings that the grid varies (without the seed)."""

    id: str
    run: Run
    varied: Mapping[str, Any]


class Grid(Struct, frozen=True):
    """All runs of a sweep, each once."""

    name: str
    points: tuple[Point, ...]
    claims: str | None = None


def read_grid(path: Path, lake: str | Path | None = None) -> Grid:
    """Read a sweep from a TOML file. Raise `BadInput` with file, line and cause if it is wrong.

    `lake` is the folder or URL in which traces are looked up if a scenario names no lake.
    """
    tables, text = read_toml(path)
    for name in tables:
        if name not in _TABLES:
            raise BadInput(f"{path}: unknown table [{name}] (known: {', '.join(_TABLES)})")
    sweep = read_table(SweepTable, Table(tables.get("sweep", {}), "sweep", str(path), text, path.parent))
    fixed, varied = tables.get("set", {}), Table(tables.get("grid", {}), "grid", str(path), text)
    scenarios, protocols, seeds = sweep.scenario, sweep.protocol, sweep.seeds
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
        files = first.file_digests()  # once for all seeds: in an object store it takes several requests
        for seed in seeds:
            run = msgspec.structs.replace(first, seed=seed)
            run_id = run.id_with(files)
            points.setdefault(run_id, Point(run_id, run, settings))
    claims = None if sweep.claims is None else str(sweep.claims.absolute())
    return Grid(sweep.name or _name(path.stem), tuple(points.values()), claims)


def _run(
    folder: Path, lake: str | Path | None, scenario: str, protocol: str, settings: Mapping[str, Any]
) -> Run:
    """Read a scenario as a run with absolute paths, so that any worker can carry it out."""
    path = folder / scenario
    run = read_scenario(
        str(path) if path.is_file() else scenario, protocol, settings=settings, lake=lake or DEFAULT_LAKE
    )
    world = dict(run.world)
    if "trace" in world and "lake" not in world and lake is not None:
        world["lake"] = joined(Path.cwd(), lake)
    base = str(Path(run.base).absolute())
    return msgspec.structs.replace(run, base=base, scenario=scenario, world=world)


def _combinations(varied: Table, protocol: str, protocols: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values that the grid has for all protocols and for this one."""
    axes: dict[str, list[Any]] = {}
    own: dict[str, list[Any]] = {}
    for name, value in varied.data.items():
        if isinstance(value, dict):
            if name not in protocols:
                raise varied.wrong(name, f"no such protocol in this sweep (it has {', '.join(protocols)})")
            own |= value if name == protocol else {}
        else:
            axes[name] = value
    axes |= own
    for name, value in axes.items():
        if not isinstance(value, list) or not value:
            raise varied.wrong(name, f"expected a list of values, got {value!r}")
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
