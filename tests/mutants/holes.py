"""Faults that no test noticed once, and the test that notices each now: `python -m tests.mutants.holes`.

Each fault is put into a copy of the project, alone, and its test must fail there; without a fault it must
pass. Prints a line per fault; the exit code is 1 if a fault is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.mutants.running import Copy

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("holes.toml")


class Hole(Struct, frozen=True):
    """A fault, in words and as a change of the text of a file, and the test that must fail with it."""

    fault: str
    file: str
    old: str
    new: str
    test: str

    def planted(self, text: str) -> str:
        """Return the file's text with the fault. The old text must occur once."""
        assert text.count(self.old) == 1, (self.fault, text.count(self.old))
        return text.replace(self.old, self.new)


def read() -> list[Hole]:
    return msgspec.convert(tomllib.loads(LIST.read_text())["holes"], list[Hole])


def main() -> int:
    """Plant each fault and run its test. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.holes", description=__doc__)
    parser.add_argument("--only", default="", help="only faults whose description has this text")
    only: str = parser.parse_args().only
    open_holes = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(ROOT, Path(folder) / "copy")
        for hole in read():
            if only in hole.fault:
                noticed = copy.fails(hole.file, hole.planted, hole.test)
                noticed = noticed and not copy.fails(hole.file, str, hole.test)
                open_holes += not noticed
                print("noticed" if noticed else "MISSED ", hole.fault, "|", hole.test, flush=True)
    return int(open_holes > 0)


if __name__ == "__main__":
    sys.exit(main())
