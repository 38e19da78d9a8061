"""Where the resident memory of a command grows: `python -m benchmarks.stage_bytes WORDS...`, bytes by stack.

A thread looks every two milliseconds at the Python functions that the main thread is in, and at the resident
memory of the process. Growth beyond the most so far belongs to that stack, so all together are the most that
the command held beyond its start. Functions of compiled modules are no Python frames: what they take belongs
to their caller. `benchmarks.profile` adds the bytes up by stage.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from types import FrameType
from typing import Final

EVERY_S: Final = 0.002
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(statm: int) -> int:
    """Return what the open file /proc/self/statm says. One system call: meanwhile the main thread may go on."""
    return int(os.pread(statm, 100, 0).split()[1]) * _PAGE


def frames_of(frame: FrameType | None) -> str:
    """The functions of a stack, the outermost first, as `benchmarks.profile` reads them."""
    names = []
    while frame is not None:
        path = frame.f_code.co_filename
        inside = path.rpartition("/precede/")[2] if "/precede/" in path else path
        names.append(f"{frame.f_code.co_name} ({f'precede/{inside}' if inside != path else path})")
        frame = frame.f_back
    return ";".join(reversed(names))


def growth_by_stack(run: Callable[[], object]) -> dict[str, int]:
    """Call a function; return by how many bytes the most memory grew in each stack."""
    grown: dict[str, int] = {}
    main, ended = threading.get_ident(), threading.Event()

    def look(most: int) -> None:
        while not ended.wait(EVERY_S):
            stack = frames_of(sys._current_frames().get(main))
            now = resident_bytes(statm)
            if now > most:
                grown[stack] = grown.get(stack, 0) + now - most
                most = now

    statm = os.open("/proc/self/statm", os.O_RDONLY)
    thread = threading.Thread(target=look, args=(resident_bytes(statm),), daemon=True)
    thread.start()
    try:
        run()
    finally:
        ended.set()
        thread.join()
        os.close(statm)
    return grown


def run_command() -> None:
    """Run `precede` with the words of this command line; what it prints is dropped."""
    from precede.cli import main as command

    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        code = command(sys.argv[1:])
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    print(json.dumps(growth_by_stack(run_command)))
