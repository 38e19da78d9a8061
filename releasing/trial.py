"""Installs the files of a release in clean environments and uses them in empty folders, as a stranger would.

Each interpreter gets its compiled wheel and the pure one; one of them also the source archive, without a C
compiler, and the compiled wheel by `uv` and `pipx`. The result is a table: megabytes, seconds, CPU seconds.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from releasing.environments import ROOT, new_environment, run, tool_environment

EXTRAS: Final = "[cli,verify]"
PAGE: Final = ROOT / "docs" / "guides" / "install.md"
_BEGIN: Final = "<!-- made by: python -m releasing try --write -->"
_END: Final = "<!-- end -->"
_HEADER: Final = (
    "| Python | installed from | by | MB | install s | simulate: CPU s | verify: CPU s | play: s | demo: s |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
_TRACE: Final = ("simulate", "city-bus", "--protocol", "causal_barrier", "--seed", "1", "--out", "day")


class Row(NamedTuple):
    """What one installation took."""

    python: str
    file: str
    tool: str
    megabytes: float
    install_s: float
    simulate_cpu_s: float
    verify_cpu_s: float
    play_s: float
    demo_s: float

    def line(self) -> str:
        cells = (self.python, self.file, self.tool, f"{self.megabytes:.0f}", f"{self.install_s:.0f}")
        seconds = (self.simulate_cpu_s, self.verify_cpu_s, self.play_s, self.demo_s)
        return f"| {' | '.join([*cells, *(f'{each:.1f}' for each in seconds)])} |"


def try_release(dist: Path, interpreters: dict[str, Path], write: bool) -> int:
    """Try everything, print the table, and with `write` put it into the guide."""
    rows = []
    for row in _rows(dist, interpreters):
        print(row.line(), file=sys.stderr, flush=True)
        rows.append(row)
    table = "\n".join([_HEADER, *(row.line() for row in rows)])
    print(f"\n{table}")
    if write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(_BEGIN)[0], text.partition(_END)[2]
        PAGE.write_text(f"{before}{_BEGIN}\n\n{table}\n\n{_END}{after}", encoding="utf-8")
    return 0


def _rows(dist: Path, interpreters: dict[str, Path]) -> Iterator[Row]:
    (pure,) = dist.glob("precede-*-none-any.whl")
    for version, interpreter in interpreters.items():
        wheels = [*dist.glob(f"precede-*-cp{version.replace('.', '')}-*.whl"), pure]
        for wheel in wheels:
            yield try_file(version, wheel, _by_pip(interpreter, {}))
    (archive,) = dist.glob("precede-*.tar.gz")
    version, interpreter = next(iter(interpreters.items()))
    without_compiler = {"CC": "no-compiler"}
    yield try_file(version, archive, _by_pip(interpreter, without_compiler))
    wheel = next(iter(dist.glob(f"precede-*-cp{version.replace('.', '')}-*.whl")), pure)
    for install in (_by_uv, _by_uv_tool, _by_pipx):
        yield try_file(version, wheel, install(interpreter))


Install = tuple[str, Callable[[Path, Path], Path]]
"""The name of a tool, and a function that installs a file below a folder and returns the command `precede`."""


def _by_pip(interpreter: Path, more: dict[str, str]) -> Install:
    def install(file: Path, folder: Path) -> Path:
        python = new_environment(interpreter, folder / "venv")
        options = ("--quiet", "--no-cache-dir")
        run([python, "-m", "pip", "install", *options, f"{file}{EXTRAS}"], folder, _clean() | more)
        return python.parent / "precede"

    return "pip", install


def _by_uv(interpreter: Path) -> Install:
    def install(file: Path, folder: Path) -> Path:
        uv, environment = tool_environment().parent / "uv", _clean()
        run([uv, "venv", "--quiet", "--python", interpreter, folder / "venv"], folder, environment)
        python = folder / "venv" / "bin" / "python"
        run(
            [uv, "pip", "install", "--quiet", "--no-cache", "--python", python, f"{file}{EXTRAS}"],
            folder,
            environment,
        )
        return python.parent / "precede"

    return "`uv pip`", install


def _by_uv_tool(interpreter: Path) -> Install:
    def install(file: Path, folder: Path) -> Path:
        places = {"UV_TOOL_DIR": str(folder / "venv"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
        uv, options = tool_environment().parent / "uv", ("--quiet", "--no-cache", "--python", interpreter)
        run([uv, "tool", "install", *options, f"{file}{EXTRAS}"], folder, _clean() | places)
        return folder / "bin" / "precede"

    return "`uv tool`", install


def _by_pipx(interpreter: Path) -> Install:
    def install(file: Path, folder: Path) -> Path:
        places = {"PIPX_HOME": str(folder / "venv"), "PIPX_BIN_DIR": str(folder / "bin")}
        pipx, options = tool_environment().parent / "pipx", ("--quiet", "--pip-args=--no-cache-dir")
        run([pipx, "install", *options, "--python", interpreter, f"{file}{EXTRAS}"], folder, _clean() | places)
        return folder / "bin" / "precede"

    return "`pipx`", install


def try_file(version: str, file: Path, by: Install) -> Row:
    """Install one file and use it: the commands of the guide, and what must be true of each."""
    tool, install = by
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        began = time.monotonic()
        precede = install(file, folder)
        install_s = time.monotonic() - began
        megabytes = _megabytes(folder / "venv")
        (folder / "empty").mkdir()
        use = _User(precede, folder / "empty")
        checked = json.loads(use("doctor", "--extra", "cli", "--extra", "verify", "--json"))
        _expect(checked["works"], f"{file.name}: precede doctor says that something does not work")
        _expect(
            bool(checked["compiled"]) == ("-cp" in file.name), f"{file.name}: compiled, or not, unlike its name"
        )
        use("simulate", "small-office", "--protocol", "vector_clock", "--seed", "7", "--out", "run")
        _expect("holds" in use("verify", "run"), f"{file.name}: the order of a run does not hold")
        use("new", "scenario")
        use("simulate", "my_scenario.toml", "--out", "mine")
        use("explain", "E011")
        began = time.monotonic()
        _expect("<html" in use.page("play", "--no-browser"), f"{file.name}: play serves no page")
        play_s = time.monotonic() - began
        with _cpu() as simulate_cpu:
            use(*_TRACE)
        with _cpu() as verify_cpu:
            use("verify", "day")
        began = time.monotonic()
        _expect("violated" in use("demo").lower(), f"{file.name}: the demo shows no violation")
        demo_s = time.monotonic() - began
    shown = (
        "source archive" if file.suffix == ".gz" else "compiled wheel" if "-cp" in file.name else "pure wheel"
    )
    return Row(version, shown, tool, megabytes, install_s, simulate_cpu[0], verify_cpu[0], play_s, demo_s)


class _User:
    """Runs the installed command in a folder that was empty, with nothing of the checkout in reach."""

    def __init__(self, command: Path, folder: Path) -> None:
        self.command, self.folder = command, folder

    def __call__(self, *arguments: str) -> str:
        return run([self.command, *arguments], self.folder, _clean())

    def page(self, *arguments: str) -> str:
        """Start a server, and return the page at the address that it prints first: `Open ADDRESS`."""
        line = [str(self.command), *arguments]
        with subprocess.Popen(line, cwd=self.folder, env=_clean(), stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().removeprefix("Open ").strip()
                _expect(address.startswith("http://127.0.0.1"), f"{line}: printed no address: {address!r}")
                with urllib.request.urlopen(address, timeout=60) as page:
                    return str(page.read(), "utf-8")
            finally:
                server.terminate()


def _clean() -> dict[str, str]:
    """Return the environment without what would lead Python to the checkout."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PRECEDE_", "VIRTUAL_ENV")) and name != "CC"
    }
    certificates = os.environ.get("PIP_CERT")
    return kept | ({"SSL_CERT_FILE": certificates} if certificates and "SSL_CERT_FILE" not in kept else {})


@contextmanager
def _cpu() -> Iterator[list[float]]:
    """Measure the CPU seconds of the processes that end within the block."""
    began, spent = resource.getrusage(resource.RUSAGE_CHILDREN), [0.0]
    yield spent
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent[0] = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def _megabytes(folder: Path) -> float:
    """Return the size of an environment without pip and without bytecode."""
    skipped = ("pip", "setuptools", "__pycache__")
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    counted = [path for path in files if not any(part.split("-")[0] in skipped for part in path.parts)]
    return sum(path.stat().st_size for path in counted) / 1e6


def _expect(is_true: bool, otherwise: str) -> None:
    if not is_true:
        raise SystemExit(otherwise)
