"""Builds the package; with PRECEDE_COMPILE set (`make compile`) also compiles modules with mypyc.

`compiled.txt` lists them: the engine, the networks and the protocols with the heaviest traffic. They also run
as plain Python, with the same event logs (`tests/sim/test_compiled.py`).
"""

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class WithPapers(build_py):
    """Puts the papers' claims, experiments and readings into the package; a source tree has them beside it."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_tree(str(ROOT / "papers"), str(Path(self.build_lib) / "precede" / "papers"))


modules = []
if os.environ.get("PRECEDE_COMPILE"):
    from mypyc.build import mypycify

    names = Path(__file__).with_name("compiled.txt").read_text().split()
    modules = mypycify(names, group_name="precede", opt_level="2", debug_level="0", multi_file=True)
    if sys.platform.startswith("linux"):
        for module in modules:  # our functions are never replaced from outside, so calls can be direct
            module.extra_compile_args.append("-fno-semantic-interposition")
            module.extra_link_args.append("-Wl,-Bsymbolic-functions")

setup(ext_modules=modules, cmdclass={"build_py": WithPapers})
