"""A block of memory that was freed is used again without page faults; garbage is collected after a world."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from precede.core.memory import keep_freed_memory, without_collections

BLOCKS = 40
FAULTS_OF_BLOCKS = f"""
import resource, sys
from precede.core.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
block = b"x" * (8 << 20)
del block
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({BLOCKS}):
    block = b"x" * (8 << 20)
    del block
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    command = [sys.executable, "-c", FAULTS_OF_BLOCKS, how]
    return int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library is not glibc")
def test_a_freed_block_is_used_again_without_page_faults() -> None:
    assert faults("keep") < faults("give back") / 10


def test_without_glibc_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_freed_memory.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()
    keep_freed_memory.cache_clear()


def test_collections_stop_in_a_block_and_go_on_after_it_even_if_it_raises() -> None:
    with without_collections():
        assert not gc.isenabled()
        with without_collections():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError), without_collections():
        raise ValueError
    assert gc.isenabled()
