"""Compiles the modules that make worlds fast, when asked to (`make compile`); otherwise all is plain Python.

The list is `compiled.txt`: the engine, the networks and the protocols with the heaviest traffic. Their text is
the same either way, and so is every world they make (`tests/sim/test_compiled.py`).
"""

import os
import sys
from pathlib import Path

from setuptools import setup

modules = []
if os.environ.get("PRECEDE_COMPILE"):
    from mypyc.build import mypycify

    names = Path(__file__).with_name("compiled.txt").read_text().split()
    modules = mypycify(names, group_name="precede", opt_level="2", debug_level="0", multi_file=True)
    if sys.platform.startswith("linux"):
        for module in modules:  # nobody replaces a function of ours from outside: calls go straight there
            module.extra_compile_args.append("-fno-semantic-interposition")
            module.extra_link_args.append("-Wl,-Bsymbolic-functions")

setup(ext_modules=modules)
