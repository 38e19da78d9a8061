"""Runs every benchmark of this folder in turn and writes RESULTS.md from their output (`make bench`).

`python -m benchmarks --list` names them; `python -m benchmarks.NAME --help` says what one measures.
"""

from __future__ import annotations

import argparse
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
    "gate",  # compares with kept figures
    "profile",  # writes a page of its own
    "rate",  # fails on a busy machine
    "slow_reader",  # takes ten minutes
    "the_one",
    "soak",  # needs network namespaces, and half an hour
)


def main() -> None:
    """Runs all benchmarks; stops with an error if one fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names of the benchmarks and start none")
    names = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_ONE)
    if parser.parse_args().list:
        print("\n".join(names))
        return
    lines = [
        "# Results",
        "",
        "Written by `make bench`. Machines are noisy: read the ratios, each measured within one run.",
        "",
    ]
    for name in names:
        print(f"benchmarks.{name} ...", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        result = json.loads(done.stdout[done.stdout.index("{") :])
        lines += [
            f"## {name}",
            "",
            f"`python -m benchmarks.{name} --json`",
            "",
            *([result.pop("table"), ""] if "table" in result else []),
            "| | |",
            "| --- | --- |",
        ]
        lines += [f"| {key} | {value} |" for key, value in result.items()]
        lines.append("")
    (FOLDER / "RESULTS.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
