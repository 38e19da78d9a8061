"""Writes docs/reference/mutants.md: faults found once, mutants by file, what was decided about survivors."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.holes import read as read_holes
from tests.mutants.making import Mutant
from tests.mutants.running import Outcome

JUDGED = Path(__file__).with_name("judged.toml")
HEAD = """# Faults put in on purpose

A test suite is judged by the faults it notices.

## Holes that were closed

No test noticed these faults when they were first put in. Now each is killed by the test that is named.
`python -m tests.mutants.holes` puts them in again, one at a time, and runs only the named test: it must fail.

"""
DRAWN = """
## Mutants

Small faults are put into the source one at a time; the tests that run the changed statement, and after them
worlds of the swarm, have to notice. `make mutants` draws them with a fixed seed and continues where it stopped:
each row of `tests/mutants/results.jsonl` is one mutant and its killer. `python -m tests.mutants --page` writes
this page from these rows. What was decided about a survivor is in `tests/mutants/judged.toml`: *equivalent* (no
input can show a difference) or *inert* (a difference in speed, memory or wording that no promise covers).

"""


def read_judged(path: Path) -> dict[str, str]:
    """Return what was decided about survivors, by the name of the mutant."""
    reasons: dict[str, str] = tomllib.loads(path.read_text())["survivors"]
    return reasons


def write_table(outcomes: Sequence[Outcome], drawn: Sequence[Mutant], page: Path) -> str:
    """Write the page. Returns its first line of figures."""
    reasons = read_judged(JUDGED)
    files: dict[str, list[Outcome]] = {mutant.file: [] for mutant in sorted(drawn, key=lambda one: one.file)}
    numbers = Counter(mutant.file for mutant in drawn)
    for one in sorted(outcomes, key=lambda one: (one.file, one.line, one.name)):
        files[one.file].append(one)
    total = _summary(outcomes, len(drawn), reasons)
    lines = [
        HEAD + _holes() + DRAWN + total,
        "",
        "| file | mutants | killed by tests | by the swarm | survived, judged | not judged | not run |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for file, own in files.items():
        counts = [numbers[file], *_counts(own, reasons), numbers[file] - len(own)]
        lines.append(f"| `{file.removeprefix('src/precede/')}` | {' | '.join(map(str, counts))} |")
    lines += ["", "## Survivors", "", "| place | change | decided |", "| --- | --- | --- |"]
    for one in sorted(outcomes, key=lambda one: (one.file, one.line)):
        if one.alive:
            change = f"`{_short(one.old)}` → `{_short(one.new)}`"
            place = f"`{one.file.removeprefix('src/precede/')}` `{one.function}` ({one.kind})"
            lines.append(f"| {place} | {change} | {reasons.get(one.name, f'not judged yet: {one.name}')} |")
    page.write_text("\n".join(lines) + "\n")
    return total


def _holes() -> str:
    rows = [
        f"| {hole.fault} | `{hole.file.removeprefix('src/precede/')}` | `{hole.test.removeprefix('tests/')}` |"
        for hole in read_holes()
    ]
    return "\n".join(["| fault | file | killed by |", "| --- | --- | --- |", *rows]) + "\n"


def _counts(outcomes: Sequence[Outcome], reasons: dict[str, str]) -> tuple[int, int, int, int]:
    """Return the numbers killed by tests or a time limit, by the swarm, alive and judged, alive and not."""
    swarm = sum(one.fate == "swarm" for one in outcomes)
    alive = [one for one in outcomes if one.alive]
    judged = sum(one.name in reasons for one in alive)
    return len(outcomes) - len(alive) - swarm, swarm, judged, len(alive) - judged


def _summary(outcomes: Sequence[Outcome], drawn: int, reasons: dict[str, str]) -> str:
    tests, swarm, judged, open_ones = _counts(outcomes, reasons)
    share = 100 * (tests + swarm) / max(1, len(outcomes))
    return (
        f"{len(outcomes)} of {drawn} mutants were run: {tests} killed by tests, {swarm} by the swarm "
        f"({share:.1f} % in all), {judged} survived and were judged, "
        f"{open_ones} survived and were not judged yet."
    )


def _short(text: str) -> str:
    line = " ".join(text.split()).replace("|", "¦").replace("`", "'")
    return line if len(line) <= 60 else line[:57] + "..."
