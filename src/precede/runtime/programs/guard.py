"""Ends the processes of an emulation if the process that started them dies, whatever it dies of."""

import contextlib
import os
import signal


class Guard:
    """A forked process that kills the listed process groups when its pipe closes. `close` ends it quietly."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(reading)
            return
        try:
            os.setsid()
            os.close(self._writing)
            _watch(reading)
        finally:
            os._exit(0)

    def add(self, group: int) -> None:
        """Watch over a process group."""
        self._say(b"+%d\n" % group)

    def remove(self, group: int) -> None:
        """Stop watching over a process group that has ended."""
        self._say(b"-%d\n" % group)

    def _say(self, line: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # somebody killed the guard: then nobody is watched over
            os.write(self._writing, line)

    def close(self) -> None:
        """End the guard. All groups must have ended."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._writing)


def _watch(reading: int) -> None:
    groups: set[int] = set()
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    for group in sorted(groups):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
