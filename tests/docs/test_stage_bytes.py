"""The bytes by stage of `benchmarks.profile`: growth belongs to the function that allocates."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.profile import stage_of

HELD = 40_000_000
ALLOCATING = f"""
import json, time
from benchmarks.stage_bytes import growth_by_stack
kept = []
def allocate():
    kept.append(b"x" * {HELD})
    time.sleep(0.3)
print(json.dumps(growth_by_stack(allocate)))
"""


def test_growth_belongs_to_the_function_that_allocates():
    # In a process of its own: the system takes unused pages from one as large as that of these tests meanwhile.
    done = subprocess.run([sys.executable, "-c", ALLOCATING], capture_output=True, text=True, check=True)
    inside = sum(count for stack, count in json.loads(done.stdout).items() if "allocate (" in stack)
    assert 0.8 * HELD < inside < 2 * HELD, done.stdout


def test_stacks_are_written_as_stages_are_read():
    assert stage_of("main (precede/cli/__init__.py);add (precede/measures/events.py)", {}) == "measures"
    assert stage_of("_find_and_load (<frozen importlib._bootstrap>);x (a.py)", {}) == "imports"
