"""Writes docs/reference/mutants.md: faults found once, mutants by file, what was decided about survivors."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.holes import read as read_holes
from tests.mutants.running import Outcome

HEAD = """# Faults put in on purpose

A test suite is judged by the faults it notices.

## Faults that survived once

No test noticed these faults when they were first put in. Now each has a test that does.
`python -m tests.mutants.holes` puts them in again, one at a time, and runs only the named test: it must fail.

"""
DRAWN = """
## Mutants

Small faults are put into the source one at a time; the tests that run the changed line, and after them worlds
of the swarm, have to notice. `make mutants` draws them with a fixed seed, continues where it stopped, and
`python -m tests.mutants --page` writes this page. What was decided about a survivor is in
`tests/mutants/judged.toml`.

"""


def write_table(outcomes: Sequence[Outcome], judged: Path, page: Path) -> str:
    """Write the page. Returns its first line of figures."""
    reasons: dict[str, str] = tomllib.loads(judged.read_text())["survivors"] if judged.exists() else {}
    files: dict[str, list[Outcome]] = {}
    for one in sorted(outcomes, key=lambda one: (one.file, one.line, one.name)):
        files.setdefault(one.file, []).append(one)
    total = _summary(outcomes, reasons)
    lines = [
        HEAD + _holes() + DRAWN + total,
        "",
        "| file | mutants | tests | swarm | alive | equivalent |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for file, own in files.items():
        counts = _counts(own, reasons)
        lines.append(f"| `{file.removeprefix('src/precede/')}` | {len(own)} | {' | '.join(map(str, counts))} |")
    lines += ["", "## Survivors", "", "| place | change | decided |", "| --- | --- | --- |"]
    for one in sorted(outcomes, key=lambda one: (one.file, one.line)):
        if one.fate in ("survived", "uncovered"):
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
    return "\n".join(["| fault | file | test |", "| --- | --- | --- |", *rows]) + "\n"


def _counts(outcomes: Sequence[Outcome], reasons: dict[str, str]) -> tuple[int, int, int, int]:
    """Return the numbers killed by tests (or time), by the swarm, alive, and alive but equivalent."""
    tests = sum(one.fate in ("tests", "time") for one in outcomes)
    swarm = sum(one.fate == "swarm" for one in outcomes)
    alive = [one for one in outcomes if one.fate in ("survived", "uncovered")]
    equivalent = sum(reasons.get(one.name, "").startswith("equivalent") for one in alive)
    return tests, swarm, len(alive) - equivalent, equivalent


def _summary(outcomes: Sequence[Outcome], reasons: dict[str, str]) -> str:
    tests, swarm, alive, equivalent = _counts(outcomes, reasons)
    share = 100 * (tests + swarm) / max(1, len(outcomes) - equivalent)
    return (
        f"{len(outcomes)} mutants: {tests} killed by tests, {swarm} by the swarm, {alive} alive, {equivalent} "
        f"equivalent (they change nothing that anybody can see); {share:.0f} % of the others are killed."
    )


def _short(text: str) -> str:
    line = " ".join(text.split()).replace("|", "¦").replace("`", "'")
    return line if len(line) <= 60 else line[:57] + "..."
