"""A reader who does what a page says: writes its files, types its commands, and compares what it shows.

The first line of a block says what it is for. Blocks of one page share a folder and a namespace.

    python              run here                       python file=a.py, toml file=…   a file to write
    sh                  commands, to their end         sh terminal=1                   a command that goes on
    text prints         lines the last commands print  text type=1                     lines typed there
    text shows=1        lines that it prints then      text press=1                    Ctrl-C or Ctrl-\\
    any block, norun    only read

In shown lines `…` stands for anything. A command says its exit code: `precede verify x   # exit 1`.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from time import monotonic, sleep

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.M | re.S)
PORT = re.compile(r"\b(?:70|91)\d\d\b")
PATIENCE_S = 120
KEYS = {"Ctrl-C": signal.SIGINT, "Ctrl-\\": signal.SIGQUIT}


def blocks(document: Path) -> list[tuple[str, str, str]]:
    """The kind, the note and the text of each block."""
    return [(m[1], m[2].strip(), m[3]) for m in FENCE.finditer(document.read_text(encoding="utf-8"))]


def runnable(document: Path) -> bool:
    return any(
        kind in ("python", "sh", "console") and "norun" not in note for kind, note, _ in blocks(document)
    )


def words_of(line: str) -> list[str]:
    """A command as a list of arguments; [] for a line that is no command of Python or Precede."""
    words = shlex.split(line.removeprefix("$ "), comments=True)
    if words[:1] == ["precede"]:
        return [sys.executable, "-m", *words]
    return [sys.executable, *words[1:]] if words[:1] == ["python"] else []


def missing_line(expected: str, printed: str) -> str:
    """The first line of `expected` that does not come in `printed` after the lines before it; "" if all do."""
    lines = iter(printed.splitlines())
    for line in expected.splitlines():
        pattern = ".*".join(map(re.escape, line.rstrip().split("…")))
        if not any(re.fullmatch(pattern, other.rstrip()) for other in lines):
            return line
    return ""


class Terminal:
    """A command that goes on, and what it has printed."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        for key in KEYS.values():  # tests in the background ignore Ctrl-C, and what they start would do so too
            if signal.getsignal(key) is signal.SIG_IGN:
                signal.signal(key, signal.default_int_handler)
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self.printed = ""
        self.compared = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.printed += line

    def type(self, lines: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(lines)
        self.process.stdin.flush()

    def shows(self, expected: str) -> None:
        end = monotonic() + PATIENCE_S
        while line := missing_line(expected, self.printed[self.compared :]):
            assert monotonic() < end, f"{line!r} is not shown: {self.printed!r}"
            sleep(0.05)
        self.compared = len(self.printed)

    def press(self, key: str) -> None:
        self.process.send_signal(KEYS[key])
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Reader:
    """Does what a document says, in a folder; ports 70.. and 91.. of the page become free ones."""

    def __init__(self, document: Path, folder: Path) -> None:
        self.document, self.folder = document, folder
        self.namespace: dict[str, object] = {"__name__": "document"}
        self.terminals: dict[str, Terminal] = {}
        self.printed = ""
        self.ports: dict[str, str] = {}
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        }

    def read(self) -> None:
        try:
            for kind, note, text in blocks(self.document):
                if "norun" not in note:
                    self._follow(kind, note, self._own_ports(text))
        finally:
            for terminal in self.terminals.values():
                terminal.close()

    def _own_ports(self, text: str) -> str:
        return PORT.sub(lambda found: self.ports.setdefault(found[0], free_port()), text)

    def _follow(self, kind: str, note: str, text: str) -> None:
        name, _, value = note.partition("=")
        if name == "file":
            path = self.folder / value
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif name == "prints":
            line = missing_line(text, self.printed)
            assert not line, f"{line!r} is not printed: {self.printed!r}"
        elif name == "terminal":
            self.terminals[value] = Terminal(words_of(text), self.folder, self.environment)
        elif name in ("type", "press", "shows"):
            getattr(self.terminals[value], name)(text if name == "type" else text.strip("\n"))
        elif kind == "python":
            exec(compile(text, str(self.document), "exec"), self.namespace)
        elif kind in ("sh", "console"):
            self.printed = "".join(self._run(line) for line in text.splitlines())

    def _run(self, line: str) -> str:
        words = words_of(line)
        if not words:
            return ""
        expected = re.search(r"# exit (\d)", line)
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == (int(expected[1]) if expected else 0), (line, done.stdout)
        return done.stdout


def free_port() -> str:
    with socket(AF_INET, SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
