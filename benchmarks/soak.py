"""A soak in network namespaces: members on a wire that loses frames, cut and killed again and again.

Every member is a process in a namespace of its own, finds the others on its LAN, and broadcasts all the time.
Every `--kill-every` seconds one of them is killed (`kill -9`) and started again; the first member is never
killed, so that its memory can be followed. Every `--cut-every` seconds the wire is cut in two for a while. Then
everything heals, every member broadcasts a last message, and everybody must deliver all of these. The event
logs are verified: order, and that every member delivered every message.

    python -m benchmarks.soak --minutes 2 --json        (30 minutes, 8 members, 20 % loss unless told otherwise)

It needs the rights to make network namespaces. Exit code 1 if anything is lost or out of order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import precede
from precede.core.errors import Refused
from precede.witness.verify import verify
from tests.network.namespaces import SOURCE, Net, Process, network, why_not

KEY: Final = bytes(range(32))
_DOWN_S: Final = (0.5, 4.0)
_LAST: Final = b"last"
_LONGEST_CATCH_UP_S: Final = 300.0


# -- one member ------------------------------------------------------------------------------------------------


async def member(settings: dict[str, Any]) -> None:
    """Broadcast until a line comes, then a last message. Leave in good order at the end of the input."""
    name, names = settings["name"], settings["names"]
    quiet = asyncio.Event()
    counts = {"sent": 0, "delivered": 0, "refused": 0}
    last_of: dict[str, None] = {}
    group = precede.join(
        "soak",
        name,
        key=KEY,
        order=settings["order"],
        members=names,
        lan=True,
        store=f"{name}.db",
        log=f"log/{name}",
        options=settings["options"],
    )

    async def take() -> None:
        async for message in group:
            counts["delivered"] += 1
            if message.payload == _LAST:
                last_of[message.source] = None

    async def say() -> None:
        done = False
        while not done:
            try:
                done = quiet.is_set()
                await group.broadcast(_LAST if done else f"{name} {time.time_ns()}".encode())
                counts["sent"] += 1
            except Refused:
                counts["refused"] += 1
                done = False
            await asyncio.sleep(settings["every"])

    async def report() -> None:
        while True:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            line = {"rss_kb": 4 * pages, **counts, "near": len(group.neighbours()), "last_of": len(last_of)}
            print(json.dumps(line), flush=True)
            await asyncio.sleep(2.0)

    async with group:
        tasks = [asyncio.create_task(work()) for work in (take, say, report)]
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.readline():
            quiet.set()
        for task in tasks:
            task.cancel()


# -- the soak --------------------------------------------------------------------------------------------------


class Soak:
    """The members, the wire between them, and what happens to both."""

    def __init__(self, net: Net, folder: Path, given: argparse.Namespace) -> None:
        self._net = net
        self._folder = folder
        self._given = given
        self._generator = random.Random(given.seed)
        self.names = [f"m{number}" for number in range(given.members)]
        self._spaces = {name: net.space(name) for name in self.names}
        ends = {space: [f"10.78.0.{n}/24"] for n, space in enumerate(self._spaces.values(), 1)}
        self._wire = net.wire("w", ends, loss=given.loss, delay=0.001, jitter=0.002)
        self._running: dict[str, Process] = {}
        self.kills = self.cuts = 0
        self.catch_up_s = 0.0
        self.memory: list[int] = []

    def start(self, name: str) -> None:
        settings = {"name": name, "names": self.names, "order": self._given.order}
        settings |= {
            "every": self._given.every,
            "options": {} if self._given.order == "total" else {"cache": 2000},
        }
        command = ("-m", "benchmarks.soak", "--member", json.dumps(settings))
        self._running[name] = self._net.start(
            self._spaces[name], command, self._folder / f"{name}.out", path=(SOURCE, SOURCE.parent)
        )

    def run(self) -> None:
        """Let the members run; kill and cut as planned; heal and close."""
        given = self._given
        for name in self.names:
            self.start(name)
        begin = time.monotonic()
        end = begin + 60 * given.minutes
        next_kill, next_cut, heal = begin + given.kill_every, begin + given.cut_every, float("inf")
        again: list[tuple[float, str]] = []
        while (now := time.monotonic()) < end:
            if now >= next_kill:
                next_kill += given.kill_every
                again.append((now + self._generator.uniform(*_DOWN_S), self._kill()))
            for due in [each for each in again if now >= each[0]]:
                again.remove(due)
                self.start(due[1])
            if now >= next_cut:
                next_cut += given.cut_every
                heal = now + given.cut_for
                self._cut()
            if now >= heal:
                heal = float("inf")
                self._wire.say(cut=[])
            self._follow_memory(now - begin)
            time.sleep(0.2)
        self._wire.say(cut=[])
        for _, name in again:
            self.start(name)
        time.sleep(5.0)
        for process in self._running.values():
            process.say(quiet=True)
        quiet_since = time.monotonic()
        while self.catch_up_s < _LONGEST_CATCH_UP_S and not self._all_have_the_last():
            time.sleep(1.0)
            self.catch_up_s = time.monotonic() - quiet_since
        for process in self._running.values():
            process.close_input()
        for name, process in self._running.items():
            code = process.ended(120.0)
            if code != 0:
                raise SystemExit(f"{name} ended with {code}")

    def _kill(self) -> str:
        name = self._generator.choice(self.names[1:])
        while self._running[name].ended(0.0) is not None:  # it is down already
            name = self._generator.choice(self.names[1:])
        self._running[name].kill()
        self.kills += 1
        return name

    def _cut(self) -> None:
        ports = list(range(len(self.names)))
        self._generator.shuffle(ports)
        half = self._generator.randint(1, len(ports) - 1)
        self._wire.say(cut=[ports[:half], ports[half:]])
        self.cuts += 1

    def _report_of(self, name: str) -> dict[str, int]:
        """The last line that a member has written; empty before the first one."""
        lines = (self._folder / f"{name}.out").read_text().splitlines(keepends=True)
        whole = [line for line in lines[-2:] if line.endswith("\n")]
        return json.loads(whole[-1]) if whole else {}

    def _all_have_the_last(self) -> bool:
        everybody = len(self.names)
        return all(self._report_of(name).get("last_of") == everybody for name in self.names)

    def _follow_memory(self, passed: float) -> None:
        """Note the memory of the member that is never killed, every five seconds."""
        if passed >= 5.0 * (len(self.memory) + 1):
            self.memory.append(self._report_of(self.names[0]).get("rss_kb", 0))

    def judged(self) -> dict[str, Any]:
        """Verify the logs, and count the messages that some member did not deliver."""
        import pyarrow.parquet as pq

        logs = self._folder / "log"
        broadcast: set[tuple[Any, ...]] = set()
        delivered: dict[str, set[tuple[Any, ...]]] = {name: set() for name in self.names}
        columns = ["node", "kind", "message_source", "message_incarnation", "message_number"]
        for file in sorted(logs.rglob("*.parquet")):
            for node, kind, *message in zip(
                *pq.read_table(file, columns=columns).to_pydict().values(), strict=True
            ):
                if kind == "broadcast":
                    broadcast.add(tuple(message))
                elif kind == "delivered":
                    delivered[str(node)].add(tuple(message))
        total = self._given.order == "total"
        verdict = verify(str(logs), self._given.order, members=self.names if total else None)
        half = self.memory[len(self.memory) // 4 : len(self.memory) // 2], self.memory[-len(self.memory) // 4 :]
        before, after = (statistics.median(part) if part else 0 for part in half)
        return {
            "order": self._given.order,
            "minutes": self._given.minutes,
            "members": len(self.names),
            "loss": self._given.loss,
            "kills": self.kills,
            "cuts": self.cuts,
            "catch_up_s": round(self.catch_up_s, 1),
            "broadcasts": len(broadcast),
            "deliveries": sum(map(len, delivered.values())),
            "lost": {name: len(broadcast - got) for name, got in delivered.items() if broadcast - got},
            "verdict": verdict.verdict,
            "reasons": list(verdict.reasons)[:3],
            "violations": verdict.violations,
            "memory_mb_second_quarter": round(before / 1024, 1),
            "memory_mb_last_quarter": round(after / 1024, 1),
            "ratio_memory_growth": round(after / before, 3) if before else 0,
            "store_mb": round(max(path.stat().st_size for path in self._folder.glob("*.db")) / 1e6, 1),
        }


def main() -> None:
    """Run the soak, or one of its members."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--member", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one object")
    parser.add_argument("--order", default="total", choices=["total", "causal", "fifo"])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--loss", type=float, default=0.2)
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two broadcasts of a member")
    parser.add_argument("--kill-every", type=float, default=10.0)
    parser.add_argument("--cut-every", type=float, default=37.0)
    parser.add_argument("--cut-for", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="an empty folder for stores and logs, which stays")
    given = parser.parse_args()
    if given.member is not None:
        asyncio.run(member(json.loads(given.member)))
        return
    reason = why_not()
    if reason is not None:
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(given.keep or made)
        with network(folder) as net:
            soak = Soak(net, folder, given)
            soak.run()
        result = soak.judged()
    if given.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<28} {value}")
    if result["verdict"] != "holds" or result["lost"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
