"""`precede bundle`: a run, or a whole reproduction, as a folder for an artefact committee."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precede.cli.data.spark import LakeOption
from precede.core.errors import BadInput

if TYPE_CHECKING:
    from precede.experiments.run import Run
    from precede.lake.jobs import Lake


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="a run's id or folder, or a reproduction's name")],
    lake: LakeOption = "lake",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="default: bundle/RUN")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print what is in it as one JSON object")] = False,
) -> int:
    """Scenario, seeds, versions, verdict, digests, and how to run it again, in one folder.

    RUN is the folder that `precede simulate` wrote, the id of a run in the lake (it is carried out again, and
    held against the log in the lake if there is one), or the name of a reproduction (`prs1997-quick`), which
    brings its claims, tables and figures.

    \b
    Example:
      precede simulate city-bus --seed 3 --out out/bus
      precede bundle out/bus
      precede bundle prs1997-quick --lake lake
    """
    from precede.experiments.bundle import digest, read_run, write_bundle
    from precede.lake.jobs import Lake

    where = Lake(lake)
    folder = out if out is not None else Path("bundle") / Path(run).name
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is there already and not empty (--out says where else)")
    whole = folder.absolute()
    partial = whole.with_name(f".{whole.name}.partial")  # a bundle is whole or not there
    shutil.rmtree(partial, ignore_errors=True)
    if (Path(run) / "run.json").is_file():
        told = write_bundle(read_run(Path(run) / "run.json"), partial, Path(run))
    elif where.root.is_dir() and where.has("comparisons", run):
        told = bundle_reproduction(where, run, partial)
    else:
        told = write_bundle(find_run(where, run), partial)
        kept = where.path("events", run)
        if kept.is_file() and digest(kept) != told["sha256"]["events.parquet"]:
            print(
                f"precede bundle: {run}: carried out again it gave another log than the lake has",
                file=sys.stderr,
            )
            partial.replace(folder)
            return 1
    partial.replace(folder)
    print(json.dumps(told, indent=2) if as_json else f"{folder}: {_listed(folder)}")
    return 0


def find_run(lake: Lake, run_id: str) -> Run:
    """A run in the lake by its id."""
    import msgspec
    import pyarrow.parquet as pq

    from precede.experiments.run import Run

    for unit in lake.units("runs"):
        rows = pq.read_table(
            lake.path("runs", unit), columns=["description"], filters=[("run_id", "=", run_id)]
        ).to_pylist()
        if rows:
            return msgspec.json.decode(rows[0]["description"], type=Run)
    raise BadInput(f"no run {run_id!r}: neither a folder with a run.json, nor in the lake {lake.root}")


def bundle_reproduction(lake: Lake, name: str, folder: Path) -> dict[str, Any]:
    """The tables of a reproduction as CSV, what they were held against, tables and figures."""
    import pyarrow.csv as pv
    import pyarrow.parquet as pq

    from precede.cli.evidence.reproduce import find_papers
    from precede.experiments.bundle import versions

    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for table in ("runs", "verdicts", "measures", "comparisons"):
        rows = pq.read_table(lake.path(table, name))
        flat = rows.select([field.name for field in rows.schema if not str(field.type).startswith("list")])
        pv.write_csv(flat, folder / f"{table}.csv")
        counts[table] = rows.num_rows
    key, _, rest = name.partition("-")
    scale = rest.rpartition("-")[2]
    exhibit = rest.removesuffix(scale).strip("-")
    shutil.copytree(find_papers() / key, folder / "papers" / key)
    exhibits = lake.root / "exhibits" / name
    if exhibits.is_dir():
        shutil.copytree(exhibits, folder / "exhibits")
    command_line = f"precede reproduce {key}{f'/{exhibit}' if exhibit else ''} --scale {scale} --papers papers"
    told: dict[str, Any] = {"reproduction": name, "rows": counts, "versions": versions(), "again": command_line}
    (folder / "bundle.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_readme(name, told), encoding="utf-8")
    return told


def _readme(name: str, told: dict[str, Any]) -> str:
    made = ", ".join(f"{package} {version}" for package, version in told["versions"].items())
    return f"""# {name}

| file | what it is |
| --- | --- |
| `papers/` | the claims with their tolerances, the experiments, the reasons |
| `runs.csv` | every run: seed, status, and its whole description (column `description`) |
| `verdicts.csv` | what the witness said about each |
| `measures.csv` | every number, for each run and each point, with intervals |
| `comparisons.csv` | each claim: published, ours, status, reason |
| `exhibits/` | the tables (LaTeX, CSV, HTML, Markdown) and figures (SVG, PNG) |

Made with {made}. To run it again:

    {told["again"]}
"""


def _listed(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir()))
