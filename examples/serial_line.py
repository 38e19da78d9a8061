"""A transport of your own: two nodes at the two ends of a serial line, frames of 255 bytes.

    python examples/serial_line.py ana /dev/ttyUSB0      (at each end of a real line)
    python examples/serial_line.py                       (both ends here, over a pseudo-terminal)

A transport moves frames, each complete or not at all. Neighbours, retransmission, order and keys are handled
above it. On a serial line frames are separated as in SLIP (RFC 1055): END between them, END and ESC inside
escaped.
"""

import asyncio
import os
import sys
import tty
from collections.abc import Callable, Hashable
from contextlib import suppress

import precede

KEY = bytes.fromhex("5d" * 32)  # for a demonstration only: precede keys make
END, ESC = b"\xc0", b"\xdb"


class SerialTransport(precede.Transport):
    """Frames over an open serial device; its only place is the other end."""

    largest = 255

    def __init__(self, line: int) -> None:
        self._line = line
        self._read = b""

    async def start(self, on_frame: Callable[[bytes, Hashable], None]) -> None:
        self._on_frame = on_frame
        os.set_blocking(self._line, False)
        asyncio.get_running_loop().add_reader(self._line, self._heard)

    def _heard(self) -> None:
        *frames, self._read = (self._read + os.read(self._line, 4096)).split(END)
        for frame in filter(None, frames):
            self._on_frame(frame.replace(ESC + b"\xdc", END).replace(ESC + b"\xdd", ESC), "the other end")

    def broadcast(self, frame: bytes) -> None:
        with suppress(
            BlockingIOError
        ):  # the line is full: the frame is lost, and sent again by the layer above
            os.write(self._line, END + frame.replace(ESC, ESC + b"\xdd").replace(END, ESC + b"\xdc") + END)

    def send(self, frame: bytes, where: Hashable) -> None:
        self.broadcast(frame)

    async def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._line)
        os.close(self._line)


def member(name: str, line: int) -> precede.Group:
    """A member at one end of a line, given by its file descriptor."""
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
