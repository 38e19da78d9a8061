"""Did a worker die of its run, or with its executor?

A Python worker that a run kills (a crash in native code, memory) leaves its executor alive. A preempted
executor or a lost machine takes all its workers with it, and says nothing about the runs they were at. A small
process beside each worker tells the two apart: when the worker is gone and the worker's parent still lives a
second later, it records in the lake that a worker died of the run. If the executor is lost, this process is
lost too, or sees that the parent is gone.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from precede.lake.jobs import Job
from precede.pipeline.sessions.tasks import attempt_number

_GRACE_S: Final = 1.0
_WATCHER: Final = """
import os, sys, time
begun, parent, grace = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
if not sys.stdin.buffer.read() and os.path.exists(begun):
    time.sleep(grace)
    os.kill(parent, 0)
    with open(begun) as file:
        run_id = file.read()
    if run_id:
        os.execv(sys.executable, [sys.executable, "-c", sys.argv[4], *sys.argv[5:], run_id])
"""
_RECORD: Final = """
import os, sys
sys.path[:0] = sys.argv[3].split(os.pathsep)
from precede.lake.storage import Storage
from precede.pipeline.sweeps.deaths import died_path
Storage(sys.argv[1]).put(died_path(sys.argv[2], sys.argv[4]), b"")
"""


class Watched:
    """Notes in a file of this machine which run the worker is at."""

    def __init__(self, job: Job, begun: Path) -> None:
        self.job, self.begun = job, begun
        if attempt_number():
            time.sleep(2 * _GRACE_S)  # the process that watched the earlier worker may still be deciding

    def begin(self, run_id: str) -> int:
        """Note that the worker begins a run; returns how many workers died of it so far."""
        self.begun.write_text(run_id)
        if not attempt_number():
            return 0
        died = self.job.storage.entries(f"{self.job.attempt}/died/{run_id}")
        return len(died)

    def end(self) -> None:
        self.begun.write_text("")


@contextmanager
def watched(job: Job, folder: Path) -> Iterator[Watched]:
    """Record in the lake if this process dies of a run in the block, but not if its executor dies too."""
    begun = folder / "begun"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    arguments = [str(begun), str(os.getppid()), str(_GRACE_S), _RECORD, job.storage.location, job.attempt, path]
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCHER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert watcher.stdin is not None
    try:
        yield Watched(job, begun)
    finally:
        watcher.stdin.write(b"done")
        watcher.stdin.close()
        watcher.wait()


def died_path(attempt: str, run_id: str) -> str:
    """A new path in the lake that records that a worker died of a run."""
    return f"{attempt}/died/{run_id}/{time.time_ns()}-{os.getpid()}"
