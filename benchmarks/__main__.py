"""Runs every benchmark of this folder in turn and writes RESULTS.md from their output (`make bench`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
NOT_ONE = (
    "digests",
    "__init__",
    "__main__",
    "measuring",
    "members",
    "metrics_soak",  # needs Debian's prometheus
    "family",
    "contact_worlds",
    "catch_up",  # takes minutes, and a machine that does nothing else
    "cluster_sweep",  # needs compiled modules, and minutes of both cores
    "processes",
    "precede_member",
    "rivals",
    "recorded",  # needs files that are not part of the project
    "rooms",
    "rate",  # fails on a busy machine
    "slow_reader",  # takes ten minutes
    "the_one",
    "soak",  # needs network namespaces, and half an hour
)


def main() -> None:
    """Runs all benchmarks; stops with an error if one fails."""
    lines = [
        "# Results",
        "",
        "Written by `make bench`. Machines are noisy: read the ratios, each measured within one run.",
        "",
    ]
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem in NOT_ONE:
            continue
        print(f"benchmarks.{path.stem} ...", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{path.stem}", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        result = json.loads(done.stdout[done.stdout.index("{") :])
        lines += [
            f"## {path.stem}",
            "",
            f"`python -m benchmarks.{path.stem} --json`",
            "",
            *([result.pop("table"), ""] if "table" in result else []),
            "| | |",
            "| --- | --- |",
        ]
        lines += [f"| {name} | {value} |" for name, value in result.items()]
        lines.append("")
    (FOLDER / "RESULTS.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
