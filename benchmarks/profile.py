"""Where the CPU time of a whole command goes: `python -m benchmarks.profile NAME` prints a table of stages.

The commands are `precede simulate` for each kind of world, and `precede verify` for a log in Parquet and CSV.

py-spy takes samples of Python and of machine code, so compiled modules show, too. A sample belongs to the
innermost function of the project on its stack: the work of a library is counted for its caller. The bytes of a
stage are those by which the resident memory grew beyond the most before (`benchmarks.stage_bytes`).
`--write` measures every name and writes benchmarks/PROFILE.md and docs/reference/where-time-goes.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from textwrap import dedent
from typing import Final

from benchmarks.verify import write_csv, write_log
from precede.report.figures import COLOURS

HERE: Final = Path(__file__).parent
PICTURE: Final = HERE.parent / "docs/reference/where-time-goes.svg"
RATE: Final = 200

SCENARIOS: Final[dict[str, str]] = {
    "bus-day": """
        world = { kind = "contacts", generator = "city-bus" }
        workload = { every = "20min", first = "20s", size = 1000 }
        run = { protocol = "delta_causal", options = { lifetime = "20min" } }""",
    "pedestrians": """
        world = { kind = "contacts", generator = "pedestrians" }
        workload = { every = "1min", first = "20s", size = 1000 }
        run = { protocol = "delta_causal", options = { lifetime = "5min" } }""",
    "point-to-point": """
        world = { kind = "point_to_point", nodes = 100, delay = "exponential(0.05)" }
        workload = { poisson = "1s", until = "20s" }
        run = { protocol = "vector_clock", options = { dissemination = "direct" } }""",
    "switched": """
        world = { kind = "switched", nodes = 256 }
        workload = { poisson = "1s", until = "4s" }
        run = { protocol = "vcube" }""",
    "flood": """
        world = { kind = "flood", nodes = 30 }
        workload = { poisson = "1s", until = "60s" }
        run = { protocol = "drift" }""",
    "cellular": """
        world = { kind = "cellular", stations = 9, hosts = 60, duration = "120s" }
        workload = { poisson = "5s", until = "100s" }
        run = { protocol = "was" }""",
}
"""The scenarios whose whole command is profiled, one for each kind of world and two of contacts."""

LOGS: Final = {"verify-parquet": (write_log, ".parquet", 5_000_000), "verify-csv": (write_csv, ".csv", 500_000)}
"""The logs of 100 nodes that are verified: who writes them, how their files' names end, and the deliveries."""

NAMES: Final = (*SCENARIOS, *LOGS)

STAGES: Final[dict[str, tuple[str, ...]]] = {
    "imports": (),
    "reading inputs": ("traces", "files", "lake", "experiments", "witness/reading"),
    "building nodes": ("protocols/registry", "sim/hosted_node"),
    "queue": ("sim/queue", "sim/fast_path", "sim/world"),
    "network": ("sim/networks", "sim/draws", "sim/randomness", "core/randomness", "core/transfers", "sim"),
    "protocol": ("protocols",),
    "effects": ("core/dispatch", "core/frequent_effects", "sim/node_effects", "sim/node_inputs", "core"),
    "gauges": ("core/peaks", "sim/gauges"),
    "rows": ("eventlog",),
    "writing": (
        "eventlog/sinks",
        "eventlog/parquet",
        "eventlog/blocks",
        "lake/integrity",
        "experiments/code_version",
    ),
    "measures": ("measures", "experiments/measuring"),
    "checks": ("witness",),
    "command line": ("cli",),
    "outside": (),
}
"""Which parts of the package make up each stage; the longest prefix of a module's path decides."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=NAMES, help="the command to profile")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument(
        "--write", action="store_true", help="profile every command and write the page and picture"
    )
    options = parser.parse_args()
    if options.write:
        profiles = {name: profile(name) for name in NAMES}
        (HERE / "PROFILE.md").write_text(page(profiles), encoding="utf-8")
        PICTURE.write_text(picture(profiles), encoding="utf-8")
    elif options.name is None:
        parser.error("which of " + ", ".join(NAMES) + "?")
    elif options.json:
        print(json.dumps(profile(options.name)))
    else:
        print(table(profile(options.name)))


def profile(name: str) -> dict[str, float]:
    """Return the CPU seconds of each stage of a command, and the bytes that it held and wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out, stacks = Path(folder) / "out", Path(folder) / "stacks"
        command = command_of(name, Path(folder), out)
        measured(command)  # numba compiles at the first use
        cpu_s, peak_bytes = measured(command)
        written = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        recorder = [str(Path(sys.executable).with_name("py-spy")), "record", "--native", "--format", "raw"]
        recorder += ["--rate", str(RATE), "--output", str(stacks), "--"]
        subprocess.run([*recorder, *command], check=True, capture_output=True)
        growth = [sys.executable, "-m", "benchmarks.stage_bytes", *command[3:]]
        grown = json.loads(subprocess.run(growth, check=True, capture_output=True).stdout)
        samples = stage_samples(stacks.read_text(encoding="utf-8"))
    share = cpu_s / sum(samples.values())
    stages = {stage: round(samples[stage] * share, 3) for stage in STAGES}
    held = dict.fromkeys(STAGES, 0)
    for stack, count in grown.items():
        held[stage_of(stack, {})] += count
    stages |= {f"{stage} bytes": count for stage, count in held.items()}
    return {**stages, "cpu_s": round(cpu_s, 2), "peak_bytes": peak_bytes, "written_bytes": written}


def command_of(name: str, folder: Path, out: Path) -> list[str]:
    """Write the input of a command; return its words."""
    precede = [sys.executable, "-m", "precede"]
    if name in LOGS:
        write, ending, deliveries = LOGS[name]
        return [*precede, "verify", str(write(folder / f"log{ending}", 100, deliveries))]
    scenario = folder / f"{name}.toml"
    scenario.write_text(dedent(SCENARIOS[name]), encoding="utf-8")
    return [*precede, "simulate", str(scenario), "--json", "--out", str(out)]


def measured(command: list[str]) -> tuple[float, int]:
    """Run a command; return its CPU seconds and the most bytes that it held."""
    quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    process = os.posix_spawn(command[0], command, os.environ, file_actions=[quiet])
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def stage_samples(stacks: str) -> dict[str, int]:
    """Count the samples of each stage. A line of `stacks` is frames separated by `;`, then the count."""
    samples = dict.fromkeys(STAGES, 0)
    symbols = compiled_modules()
    for line in stacks.splitlines():
        frames, count = line.rsplit(" ", 1)
        samples[stage_of(frames, symbols)] += int(count)
    return samples


def stage_of(frames: str, symbols: dict[str, str]) -> str:
    """Return the stage of one stack."""
    if "_find_and_load (<frozen importlib" in frames:
        return "imports"
    for frame in reversed(frames.split(";")):
        python = re.search(r"\(precede/([\w/]+)\.py", frame)
        machine = re.match(r"CPy(?:Def|Py)_(\w+)", frame)
        module = python[1] if python else symbols.get(_longest(machine[1], symbols), "") if machine else ""
        if module:
            prefixes = {prefix: stage for stage, parts in STAGES.items() for prefix in parts}
            known = [prefix for prefix in prefixes if (module + "/").startswith(prefix + "/")]
            return prefixes[max(known, key=len)] if known else "outside"
    return "outside"


def compiled_modules() -> dict[str, str]:
    """Map the prefix of a compiled function's name to its module.

    mypyc puts as many of the last parts of a module's path into names as make it unambiguous.
    """
    modules: dict[str, str] = {}
    for line in (HERE.parent / "compiled.txt").read_text(encoding="utf-8").split():
        module = line.removeprefix("src/precede/").removesuffix(".py")
        parts = module.split("/")
        for length in range(1, len(parts) + 1):
            modules.setdefault("___".join(parts[-length:]) + "___", module)
    return modules


def _longest(symbol: str, symbols: dict[str, str]) -> str:
    return max((prefix for prefix in symbols if symbol.startswith(prefix)), key=len, default="")


def table(stages: dict[str, float]) -> str:
    """Return a profile as a Markdown table."""
    lines = ["| stage | CPU s | share | MB |", "| --- | ---: | ---: | ---: |"]
    for stage in STAGES:
        megabytes = stages[f"{stage} bytes"] / 1e6
        lines.append(
            f"| {stage} | {stages[stage]:.2f} | {stages[stage] / stages['cpu_s']:.0%} | {megabytes:.1f} |"
        )
    together = sum(stages[f"{stage} bytes"] for stage in STAGES) / 1e6
    lines.append(f"| together | {stages['cpu_s']:.2f} | | {together:.0f} |")
    held, written = stages["peak_bytes"] / 1e6, stages["written_bytes"] / 1e6
    return "\n".join([*lines, "", f"Held at most {held:.0f} MB, wrote {written:.1f} MB."])


def page(profiles: dict[str, dict[str, float]]) -> str:
    """Return the page with all profiles."""
    lines = [
        "# Where the time goes",
        "",
        "Written by `python -m benchmarks.profile --write`. py-spy takes samples by the clock:",
    ]
    lines += ["on a busy machine the shares of commands of a second vary by a quarter of the whole."]
    for name, stages in profiles.items():
        lines += ["", f"## {name}", "", *described(name), "", table(stages)]
    return "\n".join(lines) + "\n"


def described(name: str) -> list[str]:
    """Return lines that say what a command does."""
    if name in LOGS:
        return [f"`precede verify` of {LOGS[name][2]:,} deliveries at 100 nodes (`{LOGS[name][1]}`)."]
    return ["```toml", dedent(SCENARIOS[name]).strip(), "```"]


HEIGHT, WIDTH, LEFT = 34, 560, 110


def picture(profiles: dict[str, dict[str, float]]) -> str:
    """Draw a bar of shares for each command, with a legend of the stages."""
    colours = {stage: COLOURS[place % len(COLOURS)] for place, stage in enumerate(STAGES)}
    opacity = {stage: 1 if place < len(COLOURS) else 0.5 for place, stage in enumerate(STAGES)}
    parts = []
    for row, (name, stages) in enumerate(profiles.items()):
        y, x = 10 + row * HEIGHT, float(LEFT)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        for stage in STAGES:
            width = WIDTH * stages[stage] / stages["cpu_s"]
            title = f"<title>{stage}: {stages[stage]:.2f} s</title>"
            fill = f'fill="{colours[stage]}" fill-opacity="{opacity[stage]}"'
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="22" {fill}>{title}</rect>')
            x += width
        parts.append(f'<text x="{x + 6:.0f}" y="{y + 16}">{stages["cpu_s"]:.1f} s</text>')
    below = 10 + len(profiles) * HEIGHT + 8
    for place, stage in enumerate(STAGES):
        x, y = 10 + place % 5 * 148, below + place // 5 * 22
        fill = f'fill="{colours[stage]}" fill-opacity="{opacity[stage]}"'
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" {fill}/>')
        parts.append(f'<text x="{x + 18}" y="{y + 11}">{stage}</text>')
    height = below + (len(STAGES) + 4) // 5 * 22
    style = "text{font:13px sans-serif;fill:#1f2937}@media (prefers-color-scheme: dark){text{fill:#e5e7eb}}"
    box = f'viewBox="0 0 {LEFT + WIDTH + 70} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><style>{style}</style>{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    main()
