"""After `kill -9` only the message in hand is delivered again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio, os, signal, sys
import precede

async def main(store, broadcasts, fatal):
    async with precede.join("g", "ana", key=None, store=store) as group:
        for number in range(broadcasts):
            await group.broadcast(b"%d" % number)
        if not group.status()["untaken"]:
            return
        async for message in group:
            os.write(1, b"%d\\n" % message.number)
            if message.number == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            if not group.status()["untaken"]:
                break

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def numbers_taken(store: Path, broadcasts: int, fatal: int) -> list[int]:
    """The numbers of the messages that one process took before it ended or was killed over message `fatal`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store), str(broadcasts), str(fatal)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (-9 if fatal else 0), done.stderr
    return [int(line) for line in done.stdout.split()]


def test_only_the_message_in_hand_is_delivered_again_after_kill_9(tmp_path: Path) -> None:
    store = tmp_path / "ana.db"
    assert numbers_taken(store, 20, fatal=7) == list(range(1, 8))
    assert numbers_taken(store, 0, fatal=8) == [7, 8]
    assert numbers_taken(store, 0, fatal=0) == list(range(8, 21))
    assert numbers_taken(store, 0, fatal=0) == []
