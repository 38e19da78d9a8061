"""What this process and a store's files use. The names are those of Prometheus' own clients."""

import os
import time
from pathlib import Path
from typing import Final

from precede.runtime.observe.families import Family, single

_STATM: Final = Path("/proc/self/statm")
_DESCRIPTORS: Final = Path("/proc/self/fd")
_BESIDE: Final = ("", "-wal", "-shm", "-taken", "-journalled")
"""The endings of a store's files."""


def process_families() -> list[Family]:
    """Return processor time and, on Linux, resident memory and open files of this process."""
    families = [
        single("process_cpu_seconds_total", "counter", "processor time of the process", time.process_time())
    ]
    try:
        resident = int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        open_files = len(os.listdir(_DESCRIPTORS))
    except OSError:
        return families
    return [
        *families,
        single("process_resident_memory_bytes", "gauge", "resident memory of the process", resident),
        single("process_open_fds", "gauge", "open files and sockets of the process", open_files),
    ]


def store_bytes(store: Path) -> int:
    """Return how many bytes the files of a store have."""
    size = 0
    for ending in _BESIDE:
        try:
            size += store.with_name(store.name + ending).stat().st_size
        except FileNotFoundError:
            continue
    return size


def free_bytes(store: Path) -> int:
    """Return how many bytes a process may still write to the disk of a store."""
    disk = os.statvfs(store.parent)
    return disk.f_bavail * disk.f_frsize
