"""The processes of an emulation: each runs some nodes, and can be killed and started again.

A process is a fork of this one, so it needs no imports. It writes its tally into memory that its parent reads.
It ends when the plan is over, on SIGTERM, when its parent is gone, or when it is killed.
"""

import asyncio
import gc
import mmap
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.runtime.emulation.members import Emulated, Tally
from precede.runtime.emulation.stage import Stage

_TALLY: Final = Layout("<qqqqq")
_LOOK: Final = 0.2


class Processes:
    """The processes of a stage. `shares` lists the nodes of each; `until` is when all of them end."""

    def __init__(self, stage: Stage, shares: Sequence[Sequence[NodeId]], until: Instant) -> None:
        self.stage = stage
        self.shares = [list(share) for share in shares]
        self.failed: list[int] = []
        self._until = until
        self._pids: dict[int, int] = {}
        self._tallies = mmap.mmap(-1, max(1, len(shares)) * _TALLY.size)
        self._before = [Tally() for _ in shares]

    def start(self, number: int, restart: bool = False) -> None:
        """Start a process, for the first time or after it was killed."""
        if restart:
            self._before[number] = self._sum(self._before[number], self._read(number))
            _TALLY.pack_into(self._tallies, number * _TALLY.size, *([0] * 5))
        gc.collect()
        gc.freeze()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            gc.unfreeze()
            self._pids[number] = pid
            return
        code = 1
        gc.set_threshold(50_000, 20, 50)  # many objects exist until the process ends
        try:
            asyncio.run(self._work(number, restart, parent))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def kill(self, number: int) -> None:
        pid = self._pids.pop(number, None)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def running(self) -> list[int]:
        """Return the numbers of the processes that still run; note failed ones in `failed`."""
        for number, pid in list(self._pids.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self._pids[number]
                if status:
                    self.failed.append(number)
        return sorted(self._pids)

    def stop(self, seconds: float = 10.0) -> None:
        """Stop all processes in good order. Kill those that do not end in time, and add them to `failed`."""
        for pid in self._pids.values():
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        for number in list(self._pids):
            self.kill(number)
            self.failed.append(number)

    def up(self, number: int) -> int:
        return self._read(number).up if number in self._pids else 0

    def tally(self) -> Tally:
        total = Tally()
        for number in range(len(self.shares)):
            total = self._sum(total, self._sum(self._before[number], self._read(number)))
        total.up = sum(self._read(number).up for number in self._pids)
        return total

    def _read(self, number: int) -> Tally:
        return Tally(*_TALLY.unpack_from(self._tallies, number * _TALLY.size))

    @staticmethod
    def _sum(a: Tally, b: Tally) -> Tally:
        late = max(a.late_us, b.late_us)
        return Tally(b.up, a.broadcasts + b.broadcasts, a.refused + b.refused, a.delivered + b.delivered, late)

    async def _work(self, number: int, restarted: bool, parent: int) -> None:
        """Run the nodes of a forked process and publish its tally."""
        stage = self.stage
        emulated = Emulated(
            stage.plan, self.shares[number], stage.open_group, stage.places, stage.clock, restarted
        )
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        running = asyncio.ensure_future(emulated.run(self._until))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        try:
            while not running.done():
                await asyncio.wait([running], timeout=_LOOK)
                stage.transfers().flush()
                self._write(number, emulated.tally)
                if os.getppid() != parent:
                    running.cancel()
            await running
        except asyncio.CancelledError:
            await asyncio.wait([running])
        stage.transfers().flush()
        self._write(number, emulated.tally)

    def _write(self, number: int, tally: Tally) -> None:
        values = (tally.up, tally.broadcasts, tally.refused, tally.delivered, tally.late_us)
        _TALLY.pack_into(self._tallies, number * _TALLY.size, *values)
