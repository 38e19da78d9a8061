"""`python -m tests.mutants`: draw mutants, judge what is not decided yet, write the table. See `--help`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from tests.mutants.coverage_map import SECONDS_OF_TESTS
from tests.mutants.making import Mutant, find_mutants
from tests.mutants.running import Copy, Outcome
from tests.mutants.table import JUDGED, read_judged, write_table
from tests.mutants.warm import Plan

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.jsonl")
AREAS = {"protocols": 7, "witness": 4, "runtime": 4, "pipeline": 1, "sim": 4, "traces": 4}
"""The packages that are changed, and the share of all mutants that each gets. The pipeline needs Spark."""

_QUICK = ["core", "protocols", "witness", "measures", "sim", "experiments", "traces", "audit", "swarm"]
_WAITING = ["runtime", "hostile", "face", "lake", "pipeline"]
FOLDERS = [f"tests/{name}" for name in (*_QUICK, *_WAITING)]
"""The tests that may notice a mutant, those that wait for sockets and files last."""

ENOUGH = 0.6
"""With --changed, the share of the sample that must be killed for exit code 0; fewer than ten prove nothing."""

SAMPLE_SECONDS = 3.0
"""With --changed, the CPU time of the tests of one mutant."""


def draw(count: int, seed: int, files: Sequence[str] | None) -> list[Mutant]:
    """Draw mutants from each area by its weight; a file with more code has more of them.

    A mutant is drawn by its own name, not by its place among others: changes elsewhere leave the draw as it is.
    """

    def rank(mutant: Mutant) -> str:
        return sha256(f"{seed} {mutant.name}".encode()).hexdigest()

    chosen: list[Mutant] = []
    for area, weight in AREAS.items():
        paths = sorted((ROOT / "src/precede" / area).rglob("*.py"))
        names = [path for path in paths if files is None or path.relative_to(ROOT).as_posix() in files]
        found = sorted((mutant for path in names for mutant in find_mutants(path, ROOT)), key=rank)
        share = -(-count * weight // sum(AREAS.values()))
        chosen += found[: count if files else share]
    chosen.sort(key=rank)
    return chosen if files is None else chosen[:count]


def changed_since(revision: str) -> list[str]:
    """Return the source files that differ from a revision, without those whose tests start Spark."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", revision, "--", "src/precede"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.split("/")[2] in AREAS and name.split("/")[2] != "pipeline"]


def mirrored(files: Sequence[str]) -> list[str]:
    """Return the folders of tests that mirror the packages of source files."""
    folders = {Path("tests", *Path(file).parts[2:-1][:2]) for file in files}
    there = {folder if (ROOT / folder).is_dir() else folder.parent for folder in folders}
    return sorted(folder.as_posix() for folder in there)


def run(plan: Plan, work: Path, jobs: int) -> None:
    """Make the map, then judge the undecided mutants, in as many processes."""
    copies = [Copy(ROOT, work / f"copy{number}") for number in range(jobs)]
    began = time.time()
    for stage, until in (("map", (began + plan.until) / 2), ("judge", plan.until)):
        running = []
        for number, copy in enumerate(copies):
            place = {"share": number, "shares": jobs, "root": str(copy.root)}
            own = msgspec.structs.replace(plan, stage=stage, until=until, **place)
            file = copy.root / "plan.json"
            file.write_bytes(msgspec.json.encode(own))
            running.append(_start(copy.root, file))
        codes = [one.wait() for one in running]
        if any(codes):
            raise SystemExit(f"{stage} failed: {codes}")


def _start(root: Path, plan: Path) -> subprocess.Popen[bytes]:
    """Start a warm process in a copy. Without numba's compiler its kernels are text that can be bent."""
    data = os.environ.get("PRECEDE_DATA", str(ROOT.parent / "shared" / "data"))
    settings = {"PYTHONPATH": f"{root}/src", "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"}
    environment = os.environ | settings | {"PYTHONHASHSEED": "0", "PRECEDE_DATA": data}
    command = [sys.executable, "-m", "tests.mutants.warm", str(plan)]
    return subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL)


def read(results: Path) -> dict[str, Outcome]:
    """Return the outcomes that are known already, by the mutant's name; the last one counts."""
    if not results.exists():
        return {}
    rows = [msgspec.json.decode(line, type=Outcome) for line in results.read_bytes().splitlines()]
    return {row.name: row for row in rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. With --changed the exit code is 1 when too few are killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=420)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes; each has a copy of the project")
    parser.add_argument(
        "--area", action="append", choices=list(AREAS), help="only this package; may be repeated"
    )
    parser.add_argument("--changed", metavar="REVISION", help="a sample from files that changed since then")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no mutant after so many seconds")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    parser.add_argument("--tests", action="append", metavar="FOLDER", help="only these tests; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=ROOT / "out/mutants", help="where copies and the map are")
    parser.add_argument("--page", action="store_true", help="only write the table of the results there are")
    options = parser.parse_args(arguments)
    until = time.time() + options.seconds
    files = changed_since(options.changed) if options.changed else None
    if files == []:
        print("no source file of these packages has changed")
        return 0
    mutants = draw(options.count, options.seed, files)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) if options.changed else options.work.resolve()
        results = work / "results.jsonl" if options.changed else options.results
        work.mkdir(parents=True, exist_ok=True)
        decided, judged = read(results), read_judged(JUDGED)
        areas = options.area or AREAS
        again = (
            {name for name, one in decided.items() if one.alive and name not in judged} if options.again else ()
        )
        undecided = [
            one
            for one in mutants
            if one.file.split("/")[2] in areas and (one.name not in decided or one.name in again)
        ]
        if undecided and not options.page:
            folders = options.tests or (mirrored(files) if files else FOLDERS)
            kept = str(work / "map.jsonl"), str(results)
            effort = (SAMPLE_SECONDS, False) if files else (SECONDS_OF_TESTS, True)
            run(Plan("", 0, 1, "", *kept, folders, mutants, undecided, until, *effort), work, options.jobs)
        decided = read(results)
    outcomes = [decided[one.name] for one in mutants if one.name in decided]
    if options.changed:
        run_by_tests = [one for one in outcomes if one.fate != "uncovered"]
        killed = sum(not one.alive for one in run_by_tests)
        print(f"{killed} of {len(run_by_tests)} mutants killed that tests of changed packages run")
        return int(len(run_by_tests) >= 10 and killed < ENOUGH * len(run_by_tests))
    page = ROOT / "docs/reference/mutants.md"
    print(write_table(outcomes, mutants, page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
