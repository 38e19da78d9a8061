"""One file per verb; this file finds the verb, runs it and turns what happened into an exit code.

May import: core, protocols, eventlog, traces, sim, runtime, verify, measures, experiments, pipeline,
    report, api

To add a verb, add one line to `VERBS` and a file `cli/<verb>.py` beside this one with either

* `def command(...) -> int | None`: typer parameters; its docstring is the help and must show an example
  (after a line with a single backslash-b, so that it is not rewrapped); or
* `app`, a `typer.Typer` made by `new_app()`, when the verb has verbs of its own (`precede keys new`).

The file is imported only when its verb is called, so heavy imports cost nobody else; still import Spark, Arrow
and the like inside functions, so that `--help` is quick. What a verb does, and what the shell sees:

* return None or 0: success, exit 0          * return 1: a finding (a violation, a claim missed), exit 1
* raise BadInput: one line on stderr, exit 2   * raise Unavailable, or miss a module: exit 3, with a line
* anything else: a bug or a broken machine, exit 3 with one line (PRECEDE_TRACEBACK=1 shows the rest)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from precede.core.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import typer

VERBS: Final[dict[str, str]] = {
    "contacts": "who is within reach of whom, and when: exact contacts of a trace",
    "simulate": "one run of a scenario, in this process",
    "swarm": "seeded worlds that break, heal, and must hold",
