"""Did a worker die of its run, or with its executor?

A Python worker that a run kills (a crash in native code, memory) leaves its executor alive. A preempted
executor or a lost machine takes all its workers with it, and says nothing about the runs they were at. A small
process beside each worker tells the two apart: when the worker is gone and the worker's parent still lives a
second later, it renames the worker's `*.begun` to `*.died`. If the executor is lost, this process is lost too,
or sees that the parent is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_GRACE_S: Final = 1.0
_WATCHER: Final = """
import os, sys, time
folder, pid, parent, grace = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
if not sys.stdin.buffer.read():
    time.sleep(grace)
    os.kill(parent, 0)
    for name in os.listdir(folder):
        if name.endswith(f"-{pid}.begun"):
            os.rename(os.path.join(folder, name), os.path.join(folder, name[:-5] + "died"))
"""


@contextmanager
def witnessed(folder: Path) -> Iterator[None]:
    """Record in the folder if this process dies while the block runs.

    A small process watches it. A death together with the parent process, the executor, is not recorded.
    """
    arguments = [str(folder), str(os.getpid()), str(os.getppid()), str(_GRACE_S)]
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCHER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert watcher.stdin is not None
    try:
        yield
    finally:
        watcher.stdin.write(b"done")
        watcher.stdin.close()
        watcher.wait()


def count_deaths(folder: Path, run_id: str) -> int:
    """Return how many workers died of a run.

    If a worker left a `*.begun`, this first waits until the process that watches it has decided its fate.
    """
    if any(folder.glob(f"{run_id}-*.begun")):
        time.sleep(2 * _GRACE_S)
    return sum(1 for _ in folder.glob(f"{run_id}-*.died"))
