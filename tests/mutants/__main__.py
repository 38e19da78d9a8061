"""`python -m tests.mutants`: draw mutants, run what is not decided yet, write the table. See `--help`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random

import msgspec

from tests.mutants.coverage_map import Map, make_map
from tests.mutants.making import Mutant, find_mutants
from tests.mutants.running import Copy, Outcome, tests_for
from tests.mutants.table import write_table

ROOT = Path(__file__).resolve().parents[2]
AREAS = {"protocols": 7, "witness": 4, "runtime": 4, "pipeline": 1, "sim": 4, "traces": 4}
"""The packages that are changed, and the share of all mutants that each gets. The pipeline needs Spark."""

PARTS = {
    "fast": ("tests/protocols", "tests/witness", "tests/measures", "tests/sim", "tests/experiments"),
    "traces": ("tests/traces",),
    "runtime": ("tests/runtime",),
}
"""The tests of which lines are noted, in parts. Others are chosen by the modules that they name."""

ENOUGH = 0.6
"""With --changed, the share of the sample that must be killed for exit code 0."""


def draw(areas: Sequence[str], count: int, seed: int, files: Sequence[str] | None) -> list[Mutant]:
    """Draw mutants from each area by its weight; a file with more code has more of them."""
    chosen: list[Mutant] = []
    for area in areas:
        paths = sorted((ROOT / "src/precede" / area).rglob("*.py"))
        names = [path for path in paths if files is None or path.relative_to(ROOT).as_posix() in files]
        found = [mutant for path in names for mutant in find_mutants(path, ROOT)]
        share = -(-count * AREAS[area] // sum(AREAS.values()))
        chosen += Random(f"{seed} {area}").sample(found, min(len(found), count if files else share))
    Random(seed).shuffle(chosen)
    return chosen if files is None else chosen[:count]


def changed_since(revision: str) -> list[str]:
    """Return the source files that differ from a revision."""
    command = ["git", "diff", "--name-only", revision, "--", "src/precede"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def run(mutants: Sequence[Mutant], results: Path, work: Path, parts: Sequence[str], jobs: int) -> list[Outcome]:
    """Judge the mutants that the results do not have yet, and return the outcomes of all of them."""
    decided = {one.name: one for one in read(results)}
    todo = [mutant for mutant in mutants if mutant.name not in decided]
    all_copies = [Copy(ROOT, work / f"copy{number}") for number in range(jobs if todo else 0)]
    covering = (
        make_map(all_copies[0].root, work, {name: PARTS[name] for name in parts}) if todo else Map({}, {})
    )
    copies: SimpleQueue[Copy] = SimpleQueue()
    for one in all_copies:
        copies.put(one)

    def judge(mutant: Mutant) -> Outcome:
        copy = copies.get()
        try:
            return copy.judge(mutant, tests_for(mutant, covering, ROOT), covering.seconds)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool, results.open("ab") as kept:
        for count, outcome in enumerate(pool.map(judge, todo), 1):
            decided[outcome.name] = outcome
            kept.write(msgspec.json.encode(outcome) + b"\n")
            kept.flush()
            place = f"{outcome.file}:{outcome.line} {outcome.kind}"
            print(f"{count}/{len(todo)} {outcome.fate:9} {place} {outcome.by}", flush=True)
    return [decided[mutant.name] for mutant in mutants]


def read(results: Path) -> list[Outcome]:
    """Return the outcomes that are known already."""
    if not results.exists():
        return []
    return [msgspec.json.decode(line, type=Outcome) for line in results.read_bytes().splitlines()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. With --changed the exit code is 1 when too few are killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=420)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--area", action="append", choices=list(AREAS), help="only this package; may be repeated"
    )
    parser.add_argument("--changed", metavar="REVISION", help="a sample from files that changed since then")
    parser.add_argument("--fast", action="store_true", help="choose among the tests of `make test-fast` only")
    parser.add_argument("--results", type=Path, default=ROOT / "out/mutants/results.jsonl")
    parser.add_argument("--page", action="store_true", help="only write the table of the results there are")
    options = parser.parse_args(arguments)
    if options.page:
        print(write_page(read(options.results)))
        return 0
    files = changed_since(options.changed) if options.changed else None
    mutants = draw(options.area or list(AREAS), options.count, options.seed, files)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) if options.changed else options.results.parent
        outcomes = run(mutants, options.results, work, ["fast"] if options.fast else list(PARTS), options.jobs)
    if options.changed:
        killed = sum(one.fate in ("tests", "time", "swarm") for one in outcomes)
        print(f"{killed} of {len(outcomes)} mutants of changed files killed")
        return int(killed < ENOUGH * len(outcomes))
    print(write_page(outcomes))
    return 0


def write_page(outcomes: Sequence[Outcome]) -> str:
    """Write docs/reference/mutants.md. Returns its first line of figures."""
    return write_table(outcomes, ROOT / "tests/mutants/judged.toml", ROOT / "docs/reference/mutants.md")


if __name__ == "__main__":
    sys.exit(main())
