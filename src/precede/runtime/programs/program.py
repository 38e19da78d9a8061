"""One foreign program: a process, its pipes, and limits on what it may say and leave unread.

Nothing here blocks. A program that prints too much, too long lines or nothing that is a message raises
`Misbehaved`, whose text is the cause. The process has a group of its own, and all of the group is killed with
it.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.runtime.programs.guard import Guard

MOST_LINE_BYTES: Final = 1 << 20
"""The most bytes in a line of a program."""
MOST_UNREAD_BYTES: Final = 1 << 22
"""The most bytes that wait for a program to read them; further messages to it are lost."""
MOST_STDERR_BYTES: Final = 1 << 20
"""The most bytes of a program's stderr that are kept in its file."""
MOST_LINES_AT_ONCE: Final = 20_000
LINES_PER_SECOND: Final = 2_000
MOST_BYTES_AT_ONCE: Final = 1 << 24
BYTES_PER_SECOND: Final = 1 << 21
_CHUNK: Final = 1 << 16
_LAST_WORDS: Final = 300
_ENDING: Final = 0.5
"""How long a program that has closed its output may take to end, in seconds."""


class Misbehaved(Exception):
    """A program broke a rule. The text is the cause, in one line."""


class Message(Struct, frozen=True):
    """A message in Maelstrom's format."""

    src: str
    dest: str
    body: dict[str, Any]


class Allowance:
    """How much a program may still say: a burst at once, and so much more in each second."""

    def __init__(self, burst: int, per_second: int, noun: str) -> None:
        self._burst, self._rate, self._noun = burst, per_second, noun
        self._left, self._at = float(burst), time.monotonic()

    def take(self, amount: int) -> None:
        """Take something from the allowance. Raise Misbehaved if nothing is left."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - amount
        self._at = now
        if self._left < 0:
            raise Misbehaved(f"floods: more than {self._burst:,} {self._noun}, {self._rate:,} in a second")


class Program:
    """A running program. `stdout` and `stderr` are file descriptors to wait for; `stdin` while `waiting`."""

    def __init__(self, command: Sequence[str], folder: Path, guard: Guard) -> None:
        self._guard = guard
        self._errors = (folder / "stderr.txt").open("ab")
        environment = {**os.environ, "PRECEDE_NODE_FOLDER": str(folder)}
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=environment,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise BadInput(f"--program {command[0]}: {error.strerror or error}") from None
        guard.add(self.process.pid)
        self.stdin, self.stdout, self.stderr = (
            _unblocked(stream) for stream in (self.process.stdin, self.process.stdout, self.process.stderr)
        )
        self.lines = 0
        self.closed_at: float | None = None
        self._ended_at: float | None = None
        self._in, self._out = bytearray(), deque[bytes]()
        self._out_bytes = 0
        self._last_words = b""
        self._allowances = (
            Allowance(MOST_LINES_AT_ONCE, LINES_PER_SECOND, "lines"),
            Allowance(MOST_BYTES_AT_ONCE, BYTES_PER_SECOND, "bytes"),
        )
        self._decode = msgspec.json.Decoder(Message).decode

    @property
    def waiting(self) -> bool:
        """True if bytes wait for the program to read them."""
        return bool(self._out)

    def write(self, message: Any) -> bool:
        """Queue a message for the program and write what it takes. Return False if too much waits already."""
        line = msgspec.json.encode(message) + b"\n"
        if self._out_bytes + len(line) > MOST_UNREAD_BYTES:
            return False
        self._out.append(line)
        self._out_bytes += len(line)
        self.flush()
        return True

    def flush(self) -> None:
        """Write what the program takes without blocking."""
        while self._out:
            try:
                count = os.write(self.stdin, self._out[0])
            except BlockingIOError:
                return
            except OSError:  # it closed its input; what it does next is seen at its output
                self._out.clear()
                self._out_bytes = 0
                return
            self._out_bytes -= count
            line = self._out.popleft()
            if count < len(line):
                self._out.appendleft(line[count:])

    def read(self) -> Iterator[tuple[Message, int]]:
        """Yield messages that the program printed, each with its size in bytes. Raise Misbehaved."""
        try:
            data = os.read(self.stdout, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.closed_at = self.closed_at or time.monotonic()
            return
        self._allowances[1].take(len(data))
        self._in += data
        *lines, rest = self._in.split(b"\n")
        self._in = bytearray(rest)
        if len(rest) > MOST_LINE_BYTES:
            raise Misbehaved(f"prints a line of more than {MOST_LINE_BYTES:,} bytes")
        for line in lines:
            if line.strip():
                yield self._message(bytes(line)), len(line)

    def _message(self, line: bytes) -> Message:
        self.lines += 1
        self._allowances[0].take(1)
        try:
            message = self._decode(line)
            if not isinstance(message.body.get("type"), str):
                raise msgspec.ValidationError("no type in its body")
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            cause = printable(str(error), 100)
            text = printable(line.decode("utf-8", "replace"), 60)
            raise Misbehaved(f"line {self.lines} of its output is no message ({cause}): {text!r}") from None
        return message

    def read_errors(self) -> bool:
        """Keep what the program printed to stderr. Return False if it closed it."""
        try:
            data = os.read(self.stderr, _CHUNK)
        except BlockingIOError:
            return True
        self._last_words = (self._last_words + data)[-4 * _LAST_WORDS :]
        room = MOST_STDERR_BYTES - self._errors.tell()
        if room > 0:
            self._errors.write(data[:room])
        return bool(data)

    def ending(self, now: float) -> str | None:
        """Return how the program ended, or that it closed its output, in words; None if it goes on."""
        code = self.process.poll()
        if code is None:
            late = self.closed_at is not None and now > self.closed_at + _ENDING
            return "closed its output" if late else None
        if self.closed_at is None:  # a process that it started still has its output
            self._ended_at = self._ended_at or now
            if now < self._ended_at + _ENDING:
                return None
        self.read_errors()
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        lines = self._last_words.decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"{how}: {printable(last, _LAST_WORDS)}" if last else how

    def hang_up(self) -> None:
        """Close the program's input, so that it ends by itself."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    def kill(self) -> None:
        """Kill the program and its group, wait for it, and close its pipes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._guard.remove(self.process.pid)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr, self._errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def printable(text: str, most: int) -> str:
    """Return a text of a stranger in one line, without control characters, shortened."""
    line = "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _unblocked(stream: IO[bytes] | None) -> int:
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    return stream.fileno()
