"""Machine instructions per row of the event log, compared with those in benchmarks/instructions.json.

    python -m benchmarks.gate            exit code 1 if something takes 3 % more than the file says
    python -m benchmarks.gate switched   only this one
    python -m benchmarks.gate --write    measure and write the file

Instructions are counted by valgrind, so a busy machine gives the same numbers. A world is simulated for a short
and a long time, with the log in memory; a short and a long log are verified, from the file to the verdict. The
figure is the difference of the instructions divided by the difference of the rows. Start-up is not in it.
Figures of another interpreter, library or compiler do not compare: then, or without valgrind, a sentence says
so and the exit code is 0.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.measuring import built
from benchmarks.verify import write_csv, write_log
from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.scenario import read_scenario
from precede.witness.verify import verify

FIGURES: Final = Path(__file__).with_name("instructions.json")
TOLERANCE: Final = 0.03
ROUNDS: Final = 2
FIXED: Final = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_CPU_NAME": "generic",  # the same kernels on every machine
    "NUMBA_CPU_FEATURES": "",
}
"""The environment in which instructions are counted."""


class World(NamedTuple):
    """The tables of a scenario, and until when messages are broadcast in the short and in the long run."""

    world: str
    workload: str
    run: str
    short: str
    long: str

    def scenario(self) -> str:
        return f"world = {{ {self.world} }}\nworkload = {{ {self.workload} }}\nrun = {{ {self.run} }}\n"


DELTA_CAUSAL: Final = 'protocol = "delta_causal", options = { lifetime = "2min" }'
CAUSAL: Final = 'protocol = "causal_barrier", options = { dissemination = "direct" }'
WORLDS: Final = {
    "contacts": World(
        'kind = "contacts", contacts = "contacts.csv"',
        'every = "20s", first = "1s"',
        DELTA_CAUSAL,
        "2min",
        "4min",
    ),
    "point_to_point": World(
        'kind = "point_to_point", nodes = 16, delay = "exponential(0.05)"', 'poisson = "1s"', CAUSAL, "1s", "3s"
    ),
    "switched": World('kind = "switched", nodes = 16', 'poisson = "1s"', 'protocol = "vcube"', "1s", "4s"),
    "flood": World('kind = "flood", nodes = 8', 'poisson = "2s"', 'protocol = "drift"', "2s", "6s"),
    "cellular": World(
        'kind = "cellular", stations = 4, hosts = 12, duration = "10s"',
        'poisson = "1s"',
        'protocol = "was"',
        "2s",
        "6s",
    ),
}

LOGS: Final[dict[str, tuple[Callable[[Path, int, int], Path], str]]] = {
    "verify_parquet": (write_log, ".parquet"),
    "verify_csv": (write_csv, ".csv"),
}
"""The formats of the logs that are verified: who writes them, and how their files' names end."""
DELIVERIES: Final = {"short": 120_000, "long": 240_000}
"""The rows of a log. The short one is long enough for the reader of large files."""
NAMES: Final = (*WORLDS, *LOGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="keep the figures as those to compare with")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--counted", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--compile", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(NAMES)}")
    names = options.names or NAMES
    if options.compile:
        for name in set(names) & set(LOGS):
            next(log_checks(Path(options.compile), name))
        return
    if options.counted:
        run_all(Path(options.counted), names)
        return
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))
    if reason := not_comparable(kept["made_with"]) if not options.write else needs_valgrind():
        print(reason)
        return
    figures = count_all(names)
    if options.write:
        others = kept["per_row"] if kept["made_with"] == made_with() else {}
        written = {"made_with": made_with(), "per_row": others | figures}
        FIGURES.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(figures))
        return
    sys.exit(0 if options.write else compare(figures, kept["per_row"]))


def not_comparable(kept: str) -> str:
    """Say why instructions cannot be compared here with those that `kept` describes; empty if they can."""
    if kept != made_with():
        return f"not compared: the figures were counted with {kept}, here is {made_with()}"
    return needs_valgrind()


def needs_valgrind() -> str:
    return "" if shutil.which("valgrind") else "not counted: valgrind is not installed"


def compare(figures: dict[str, int], kept: dict[str, int]) -> int:
    """Print the figures beside the kept ones; return 1 if one of them is too large."""
    too_many = 0
    for name, count in figures.items():
        growth = count / kept[name] - 1
        too_many += growth > TOLERANCE
        note = " too many" if growth > TOLERANCE else ""
        print(f"{name:16}{count:9,} instructions a row, {growth:+.1%}{note}")
    return min(too_many, 1)


def made_with() -> str:
    """Return what the figures depend on besides the project's source."""
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("msgspec", "mypy", "numba", "numpy", "pyarrow")
    )
    python = f"CPython {platform.python_version()}, {platform.python_compiler()}"
    return f"{built()} {python}, {compiler()}, {libraries}"


def compiler() -> str:
    """Return the version of the C compiler, with which the compiled modules are made."""
    if shutil.which("cc") is None:
        return "no cc"
    done = subprocess.run(["cc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return f"cc {done.stdout.strip()}"


def count_all(names: Sequence[str]) -> dict[str, int]:
    """Return the instructions per row of each name, counted in one process under valgrind."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **FIXED}
        if set(names) & set(LOGS):  # under valgrind numba would take minutes
            compiling = [sys.executable, "-m", "benchmarks.gate", *names, "--compile", folder]
            subprocess.run(compiling, env=environment, check=True)
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/dump"]
        command += [sys.executable, "-m", "benchmarks.gate", *names, "--counted", folder]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        rows = json.loads((Path(folder) / "rows.json").read_text())
        counts = _counts(Path(folder))
    figures = {}
    for name in names:
        short, long = (min(counts[f"{name} {end}"]) for end in ("short", "long"))
        figures[name] = round((long - short) / (rows[f"{name} long"] - rows[f"{name} short"]))
    return figures


def _counts(folder: Path) -> dict[str, list[int]]:
    """Return the instructions of every dump, by its name."""
    counts: dict[str, list[int]] = {}
    for file in sorted(folder.glob("dump*")):
        text = file.read_text(encoding="utf-8")
        named = re.search(r"^desc: Trigger: dump (.*)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if named and total:
            counts.setdefault(named[1].replace("_long", " long").replace("_short", " short"), []).append(
                int(total[1])
            )
    return counts


def run_all(folder: Path, names: Sequence[str]) -> None:
    """Do everything several times, each between two commands to valgrind; the process under valgrind."""
    rows = {}
    for name in names:
        runs = world_runs(folder, name) if name in WORLDS else log_checks(folder, name)
        for length, run in runs:
            gc.collect()
            _control("--instr=on")
            _control("--zero")
            rows[f"{name} {length}"] = run()
            _control(f"--dump={name}_{length}")
            _control("--instr=off")
    (folder / "rows.json").write_text(json.dumps(rows))


def world_runs(folder: Path, name: str) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield simulations of a world, short and long in turn; each returns the number of its rows."""
    starts = {(a, b): (a * 7 + b * 13) % 40 for b in range(20) for a in range(b % 4, b, 4)}
    meetings = [
        f"n{a},n{b},{at + 40 * k},{at + 40 * k + 15}" for k in range(6) for (a, b), at in starts.items()
    ]
    (folder / "contacts.csv").write_text("\n".join(["a,b,start,end", *meetings]) + "\n", encoding="utf-8")
    world, file = WORLDS[name], folder / f"{name}.toml"
    file.write_text(world.scenario(), encoding="utf-8")
    for _ in range(ROUNDS):
        for length, until in (("short", world.short), ("long", world.long)):
            settings = {"until": until, "gauges": "none"}
            yield length, partial(_simulate, prepare(read_scenario(str(file), settings=settings), TableSink()))


def _simulate(ready: Any) -> int:
    ready.world.run(ready.end)
    ready.recorder.flush()
    rows: int = ready.recorder.rows
    return rows


def log_checks(folder: Path, name: str) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield verifications of a short and a long log in turn; each returns the number of rows."""
    write, ending = LOGS[name]
    logs = {length: write(folder / f"{length}{ending}", 20, count) for length, count in DELIVERIES.items()}
    _verify(logs["short"])  # kernels are compiled or loaded
    for _ in range(ROUNDS):
        for length, log in logs.items():
            yield length, partial(_verify, log)


def _verify(log: Path) -> int:
    verdict = verify(log, "causal", engine="numba")
    assert verdict.holds, verdict
    return verdict.rows


def _control(command: str) -> None:
    subprocess.run(["callgrind_control", command, str(os.getpid())], check=True, capture_output=True)


if __name__ == "__main__":
    main()
