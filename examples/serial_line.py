"""A transport of your own: two nodes at the two ends of a serial line, frames of 255 bytes.

    python examples/serial_line.py ana /dev/ttyUSB0      (at each end of a real line)
    python examples/serial_line.py                       (both ends here, over a pseudo-terminal)

A transport moves frames, each whole or not at all; who is there, what is lost, order and keys are not its
business. On a line frames are set apart as in SLIP (RFC 1055): END between them, END and ESC inside escaped.
"""

import asyncio
import os
import sys
import tty
from contextlib import suppress

import precede
from precede.runtime.group import Group
from precede.runtime.transports.transport import OnFrame, Transport, Where

KEY = bytes.fromhex("5d" * 32)  # for a demonstration only: precede keys make
END, ESC = b"\xc0", b"\xdb"


class SerialTransport(Transport):
    largest = 255

    def __init__(self, line: int) -> None:
        self._line = line
        self._read = b""

    async def start(self, on_frame: OnFrame) -> None:
        self._on_frame = on_frame
        os.set_blocking(self._line, False)
        asyncio.get_running_loop().add_reader(self._line, self._heard)

    def _heard(self) -> None:
        *frames, self._read = (self._read + os.read(self._line, 4096)).split(END)
        for frame in filter(None, frames):
            self._on_frame(frame.replace(ESC + b"\xdc", END).replace(ESC + b"\xdd", ESC), "the other end")

    def broadcast(self, frame: bytes) -> None:
        with suppress(BlockingIOError):  # the line is full: as if lost on the way, and sent again from above
            os.write(self._line, END + frame.replace(ESC, ESC + b"\xdd").replace(END, ESC + b"\xdc") + END)

    def send(self, frame: bytes, where: Where) -> None:
        self.broadcast(frame)

    async def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._line)
        os.close(self._line)


def member(name: str, line: int) -> Group:
    tty.setraw(line)
    return precede.join("line", name, key=KEY, members=["ana", "ben"], transport=SerialTransport(line))


async def both_ends_here() -> None:
    ana, ben = (member(name, line) for name, line in zip(("ana", "ben"), os.openpty(), strict=True))
    async with ana, ben:
        await ana.broadcast(b"a question, longer than one frame of the line: " + b"why? " * 60)
        async for message in ben:
            print(f"ben got {len(message.payload)} bytes from {message.source}")
            break
        await ben.broadcast(b"because")
        async for message in ana:
            if message.source == "ben":
                print(f"ana got {message.payload.decode()!r} from ben")
                break


async def one_end(name: str, device: str) -> None:
    async with member(name, os.open(device, os.O_RDWR | os.O_NOCTTY)) as group:
        await group.broadcast(f"{name} is here".encode())
        async for message in group:
            print(f"{message.source}: {message.payload.decode(errors='replace')}", flush=True)


if __name__ == "__main__":
    asyncio.run(one_end(*sys.argv[1:3]) if len(sys.argv) > 2 else both_ends_here())
