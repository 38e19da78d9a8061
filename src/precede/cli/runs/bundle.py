"""`precede bundle`: a run or a reproduction as a self-contained folder, for an artefact committee."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from precede.cli.data.spark import LakeOption
from precede.cli.parameters import Argument, Option
from precede.cli.progress import working
from precede.core.errors import BadInput

if TYPE_CHECKING:
    from precede.experiments.run import Run
    from precede.lake.layout import Lake


def command(
    run: Annotated[str, Argument(metavar="RUN", help="a run's id or folder, or a reproduction's name")],
    lake: LakeOption = "lake",
    out: Annotated[Path | None, Option(metavar="DIR", help="default: bundle/RUN")] = None,
    as_json: Annotated[bool, Option("--json", help="print the contents as one JSON object")] = False,
) -> int:
    """Write a folder with scenario, seeds, versions, verdict, digests, and the command to run it again.

    RUN is the folder that `precede simulate` wrote, or the id of a run in the lake (it is carried out again,
    and its log is compared with the lake's, if the lake has it), or the name of a reproduction
    (`prs1997-quick`); its bundle has the claims, tables and figures.

    \b
    Example:
      precede simulate city-bus --seed 3 --out out/bus
      precede bundle out/bus
      precede bundle prs1997-quick --lake lake
    """
    from precede.experiments.bundle import read_run, write_bundle
    from precede.lake.layout import Lake

    store = Lake(lake)
    folder = out if out is not None else Path("bundle") / Path(run).name
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: exists and is not empty (use --out)")
    whole = folder.absolute()
    partial = whole.with_name(f".{whole.name}.partial")  # renamed when complete, so a bundle is never partial
    shutil.rmtree(partial, ignore_errors=True)
    is_same = True
    with working(f"bundling {run}"):
        if (Path(run) / "run.json").is_file():
            contents = write_bundle(read_run(Path(run) / "run.json"), partial, Path(run))
        elif store.has("comparisons", run):
            contents = bundle_reproduction(store, run, partial)
        else:
            contents = write_bundle(find_run(store, run), partial)
            is_same = not store.has("events", run) or _is_same_log(store, run, partial / "events.parquet")
    partial.replace(folder)
    if not is_same:
        line = f"precede bundle: {run}: carried out again, the run gave another log than the one in the lake"
        print(line, file=sys.stderr)
        return 1
    print(json.dumps(contents, indent=2) if as_json else f"{folder}: {_listed(folder)}")
    return 0


def find_run(lake: Lake, run_id: str) -> Run:
    """Find the description of a run in the lake by its id. Raise BadInput if the lake has no such run."""
    import msgspec

    from precede.experiments.run import Run

    for unit in lake.units("runs"):
        rows = lake.read("runs", unit, ["description"], [("run_id", "=", run_id)]).to_pylist()
        if rows:
            return msgspec.json.decode(rows[0]["description"], type=Run)
    raise BadInput(f"no run {run_id!r}: neither a folder with a run.json, nor in the lake {lake.location}")


def _is_same_log(lake: Lake, run_id: str, log: Path) -> bool:
    """Has the lake the same rows for a run as a file?"""
    import pyarrow.parquet as pq

    ours = pq.read_table(log)
    return bool(lake.read("events", run_id, ours.column_names).cast(ours.schema).equals(ours))


def bundle_reproduction(lake: Lake, name: str, folder: Path) -> dict[str, Any]:
    """Write the bundle of a reproduction: results as CSV, claims, tables, figures; return its bundle.json."""
    import pyarrow.csv as pv

    from precede.experiments.bundle import versions
    from precede.reproduction.papers import find_papers

    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for table in ("runs", "verdicts", "measures", "comparisons"):
        rows = lake.read(table, name)
        flat = rows.select([field.name for field in rows.schema if not str(field.type).startswith("list")])
        pv.write_csv(flat, folder / f"{table}.csv")
        counts[table] = rows.num_rows
    key, _, rest = name.partition("-")
    scale = rest.rpartition("-")[2]
    exhibit = rest.removesuffix(scale).strip("-")
    shutil.copytree(find_papers() / key, folder / "papers" / key)
    for file in lake.exhibit_files(name):
        (folder / "exhibits").mkdir(exist_ok=True)
        shutil.copyfile(file, folder / "exhibits" / file.name)
    command_line = f"precede reproduce {key}{f'/{exhibit}' if exhibit else ''} --scale {scale} --papers papers"
    contents: dict[str, Any] = {
        "reproduction": name,
        "rows": counts,
        "versions": versions(),
        "again": command_line,
    }
    (folder / "bundle.json").write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_readme(name, contents), encoding="utf-8")
    return contents


def _readme(name: str, contents: dict[str, Any]) -> str:
    made = ", ".join(f"{package} {version}" for package, version in contents["versions"].items())
    return f"""# {name}

| file | content |
| --- | --- |
| `papers/` | the claims with their tolerances, the experiments, and the reasons for differences |
| `runs.csv` | every run: seed, status, and its complete description (column `description`) |
| `verdicts.csv` | the verifier's verdict about each run |
| `measures.csv` | all measures of each run and each point, with confidence intervals |
| `comparisons.csv` | each claim: published, ours, status, reason |
| `exhibits/` | the tables (LaTeX, CSV, HTML, Markdown) and figures (SVG, PNG) |

Made with {made}. To run it again:

    {contents["again"]}
"""


def _listed(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir()))
