"""A member that was away for many messages catches up, over loss, and is killed twice on the way.

Three members stay and broadcast; the fourth is killed, and is started again when they are done. Its frames are
lost in both directions (20 %). It is killed (`kill -9`) at about a third and at two thirds of the way. At the
end its state must be that of the others: in `total` a hash over all messages in their order, and a table; in
`causal` a sum over the messages, because there the order may differ.

* `total`: the member gets a snapshot of another one (`on_snapshot`, `on_restore`), then the messages after it.
* `causal`: the member gets the others' history. They carry few messages (`cache`): gossip does not suffice.

Every member signs. At each start an application rebuilds its state from its file, and its history behind it.

    python -m benchmarks.catch_up --json        (100,000 messages, both orders; a few minutes for each)
    python -m benchmarks.catch_up --messages 1500 --state 400000

It prints the seconds from the first start to the same state, the bytes that the member received and sent, and
the largest memory of its processes. Exit code 1 if the states differ.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

import precede
from precede.runtime.links.authorship import public_of
from precede.runtime.transports.transport import OnFrame, Where

KEY: Final = bytes(range(32))
NAMES: Final = ("ana", "ben", "cleo", "dora")
STAYING: Final = NAMES[:3]
IDENTITIES: Final = {name: bytes([place + 1]) * 32 for place, name in enumerate(NAMES)}
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "total": {"suspect_after": "3s", "retention": "5s"},
    "causal": {"cache": 200},
}
BEFORE: Final = 100
"""Messages that everybody delivers before the fourth member is killed."""
PAYLOAD_BYTES: Final = 100
ROW_BYTES: Final = PAYLOAD_BYTES + 5
"""A row of the table as it is in a snapshot: a payload, its length, and the row's number."""


class Lossy(precede.UdpTransport):
    """UDP that loses a share of the frames in each direction, and counts the bytes of the others."""

    def __init__(self, peers: list[tuple[str, int]], loss: float) -> None:
        super().__init__(("127.0.0.1", 0), peers, None)
        self._generator = random.Random(1)
        self._loss = loss
        self.sent_bytes = self.received_bytes = 0

    async def start(self, on_frame: OnFrame) -> None:
        def heard(frame: bytes, where: Where) -> None:
            if self._generator.random() >= self._loss:
                self.received_bytes += len(frame)
                on_frame(frame, where)

        await super().start(heard)

    def send(self, frame: bytes, where: Where) -> None:
        if self._generator.random() >= self._loss:
            self.sent_bytes += len(frame)
            super().send(frame, where)

    def broadcast(self, frame: bytes) -> None:
        if self._generator.random() >= self._loss:
            self.sent_bytes += len(frame)
            super().broadcast(frame)


class State(msgspec.Struct, array_like=True):
    """The state of the application. `digest` depends on the order of the messages only if `ordered`."""

    ordered: bool
    place: int = 0
    count: int = 0
    digest: bytes = bytes(32)
    table: dict[int, bytes] = {}

    def apply(self, message: precede.Delivered) -> None:
        self.place = message.place
        self.count += 1
        id = message.id
        text = f"{id.source}.{id.incarnation}.{id.number}".encode() + message.payload
        if self.ordered:
            self.digest = blake2b(self.digest + text, digest_size=32).digest()
            self.table[self.count % len(self.table) if self.table else 0] = message.payload
        else:
            added = int.from_bytes(self.digest, "big") + int.from_bytes(blake2b(text).digest()[:32], "big")
            self.digest = (added % (1 << 256)).to_bytes(32, "big")

    def summary(self) -> dict[str, Any]:
        table = blake2b(msgspec.msgpack.encode(sorted(self.table.items()))).hexdigest()[:16]
        return {"count": self.count, "digest": self.digest.hex()[:16], "table": table}


# -- one member ------------------------------------------------------------------------------------------------


async def member(settings: dict[str, Any]) -> None:
    """Join, and obey lines: a number is how many messages to broadcast. Print the state all the time."""
    name, order, folder = settings["name"], settings["order"], Path(settings["folder"])
    file = folder / f"{name}.state"
    rows = settings["state"] // ROW_BYTES if order == "total" else 0
    state = State(order == "total", table={row: bytes(PAYLOAD_BYTES) for row in range(rows)})
    if file.exists():
        state = msgspec.msgpack.decode(file.read_bytes(), type=State)

    def restore(snapshot: precede.Snapshot) -> None:
        nonlocal state
        state = msgspec.msgpack.decode(snapshot.state, type=State)
        state.place = snapshot.place
        written = file.with_suffix(".new")
        written.write_bytes(msgspec.msgpack.encode(state))
        os.replace(written, file)

    transport = Lossy([tuple(peer) for peer in settings["peers"]], settings["loss"])
    given: dict[str, Any] = {}
    if order == "total":
        given = {"on_snapshot": lambda: msgspec.msgpack.encode(state), "on_restore": restore}
    async with precede.join(
        "catch-up",
        name,
        key=KEY,
        order=order,
        store=folder / f"{name}.db",
        members=[other for other in NAMES if other != name],
        transport=transport,
        identity=IDENTITIES[name],
        roster={other: public_of(seed) for other, seed in IDENTITIES.items()},
        retention=precede.Retention(messages=None, bytes=None),
        options=OPTIONS[order],
        **given,
    ) as group:
        for message in group.history(since=state.place):
            state.apply(message)

        async def take() -> None:
            async for message in group:
                if message.place > state.place:  # the history had it
                    state.apply(message)

        async def tell() -> None:
            spool = folder / f"{name}.db-snapshot"
            while True:
                usage = resource.getrusage(resource.RUSAGE_SELF)
                line = {
                    **state.summary(),
                    "address": group.address,
                    "neighbours": len(group.neighbours()),
                    "fetched": spool.stat().st_size if spool.exists() else 0,
                    "restored": file.exists(),
                    "received": transport.received_bytes,
                    "sent": transport.sent_bytes,
                    "rss_mb": usage.ru_maxrss / 1024,
                    "dropped": group.status()["dropped"],
                }
                print(json.dumps(line), flush=True)
                await asyncio.sleep(0.1)

        tasks = [asyncio.create_task(take()), asyncio.create_task(tell())]
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            for number in range(int(line)):
                await send(group, f"{name} {number}".encode().ljust(PAYLOAD_BYTES))
        for task in tasks:
            task.cancel()


async def send(group: precede.Group, payload: bytes) -> None:
    while True:
        try:
            return await group.broadcast(payload)
        except precede.NotYet:
            await asyncio.sleep(0.1)


# -- the benchmark ---------------------------------------------------------------------------------------------


class Member:
    """A member in a process of its own. `now` is what it printed last."""

    def __init__(self, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "benchmarks.catch_up", "--member", json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.now: dict[str, Any] = {}
        self._printed = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        """Read all that the member prints: one whose output nobody reads stands still."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # a killed member's last line may be cut off
                self.now = json.loads(line)
                self._printed.set()

    def read(self) -> dict[str, Any]:
        """Wait for the next line that the member prints, and return it."""
        self._printed.clear()
        if not self._printed.wait(60):
            raise RuntimeError(f"a member is silent; its exit code is {self.process.poll()}")
        return self.now

    def broadcast(self, count: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
                return
            self.kill()


def wait_for(members: list[Member], count: int, seconds: float) -> None:
    """Wait until all members have delivered so many messages and agree. Raise TimeoutError after a time."""
    until = time.monotonic() + seconds
    keys = ("count", "digest", "table")
    while True:
        for each in members:
            each.read()
        same = {tuple(each.now[key] for key in keys) for each in members}
        if len(same) == 1 and members[0].now["count"] >= count:
            return
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds:.0f} s: {[each.now for each in members]}")


def run(order: str, messages: int, loss: float, state: int, seconds: float) -> dict[str, Any]:
    """Run one order. Raise TimeoutError if the states are not the same after so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        members: dict[str, Member] = {}

        def start(name: str, lost: float) -> Member:
            peers = [each.now["address"] for other, each in members.items() if other != name]
            settings = {
                "name": name,
                "order": order,
                "folder": folder,
                "peers": peers,
                "loss": lost,
                "state": state,
            }
            members[name] = Member(settings)
            members[name].read()
            return members[name]

        try:
            for name in NAMES:
                start(name, 0.0)
            for name in NAMES:
                members[name].broadcast(BEFORE // len(NAMES))
            wait_for(list(members.values()), BEFORE, seconds)
            members["dora"].kill()
            staying = [members[name] for name in STAYING]
            for each in staying:
                each.broadcast(messages // len(staying))
            total = BEFORE + messages // len(staying) * len(staying)
            wait_for(staying, total, seconds)
            if order == "total":
                time.sleep(8)  # nobody keeps the messages themselves any more
            return catch_up(start, members, messages, loss, state, seconds)
        finally:
            for each in members.values():
                each.stop()


def catch_up(
    start: Any, members: dict[str, Member], messages: int, loss: float, state: int, seconds: float
) -> dict[str, Any]:
    """Start the fourth member again, kill it twice on the way, and wait until its state is the others'."""
    began = time.monotonic()
    lives: list[dict[str, Any]] = []
    killed_at = []
    for share in (0.33, 0.66):
        dora = start("dora", loss)
        until = time.monotonic() + seconds
        while way(dora.now, messages, state) < share and not dora.now["restored"]:
            dora.read()
            if time.monotonic() > until:
                raise TimeoutError(f"after {seconds:.0f} s: {dora.now}")
        killed_at.append(round(way(dora.now, messages, state), 2))
        dora.kill()
        lives.append(dora.now)
    dora = start("dora", loss)
    wait_for([members["ana"], dora], BEFORE + messages // len(STAYING) * len(STAYING), seconds)
    lives.append(dora.now)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "killed_at": killed_at,
        "received_bytes": sum(life["received"] for life in lives),
        "sent_bytes": sum(life["sent"] for life in lives),
        "peak_rss_mb": round(max(life["rss_mb"] for life in lives), 1),
        "others_rss_mb": round(max(members[name].now["rss_mb"] for name in STAYING), 1),
        "messages": messages,
        "same_state": True,
        "restored_from_snapshot": dora.now["restored"],
        "dropped": dora.now["dropped"],
    }


def way(now: dict[str, Any], messages: int, state: int) -> float:
    """How much of the way a member has gone: of the snapshot's bytes, or of the messages."""
    return max(now["fetched"] / max(state, 1), (now["count"] - BEFORE) / messages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--member", help=argparse.SUPPRESS)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--order", choices=("total", "causal", "both"), default="both")
    parser.add_argument("--loss", type=float, default=0.2)
    parser.add_argument("--state", type=int, default=4_000_000, help="bytes of an application's state in total")
    parser.add_argument("--seconds", type=float, default=1800.0, help="give up a phase after so many")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if chosen.member is not None:
        asyncio.run(member(json.loads(chosen.member)))
        return 0
    results: dict[str, Any] = {}
    for order in ("total", "causal") if chosen.order == "both" else (chosen.order,):
        try:
            results[order] = run(order, chosen.messages, chosen.loss, chosen.state, chosen.seconds)
        except TimeoutError as error:
            results[order] = {"same_state": False, "why": str(error)}
        if not chosen.json:
            print(order, json.dumps(results[order], indent=2))
    if chosen.json:
        print(json.dumps(results))
    return 0 if all(result["same_state"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
