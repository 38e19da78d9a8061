"""Options, session and progress display of the commands that run on Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress: TypeAlias = Callable[[int, int], None]
"""A function that is called with the number of units of work that are done and the number of all."""

LakeOption = Annotated[
    str, typer.Option("--lake", metavar="DIR", help="folder of the lake, or its URL (s3://...)")
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark master: local[N], spark://HOST:PORT, yarn, k8s://URL (default: here)",
    ),
]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="a Spark setting; can be repeated")
]

SameCodeOption = Annotated[
    bool, typer.Option("--same-code", help="run again what other code of the same version left in the lake")
]

_QUIET_LINE_S = 10.0


@contextmanager
def session_for(
    master: str | None, conf: Sequence[str] | None, name: str, light: bool = False
) -> Iterator[SparkSession]:
    """Open a Spark session for one command; a terminal shows a note during the seconds that it takes."""
    from precede.pipeline.sessions.session import EMBEDDED, open_session

    if sys.stderr.isatty():
        print(f"opening a Spark session at {master or EMBEDDED} ...", end="\r", file=sys.stderr, flush=True)
    with open_session(master, conf or (), name, light) as session:
        if sys.stderr.isatty():
            print("\033[K", end="", file=sys.stderr, flush=True)
        yield session


def by_other_code(count: int) -> list[str]:
    """Return a line about results that other code with the same version number made; none if count is 0."""
    if not count:
        return []
    return [f"  {count:,} of them by other code of this version (--same-code runs them again)"]


@contextmanager
def counting(units: str) -> Iterator[Progress]:
    """Show progress: done, rate and time left. Yield a function that takes the units done and all units.

    A terminal has one line that changes; otherwise a line is printed every ten seconds.
    """
    began = time.monotonic()
    terminal = sys.stderr.isatty()
    state = {"first": -1, "shown": began}

    def show(done: int, total: int) -> None:
        now = time.monotonic()
        if state["first"] < 0:
            state["first"] = done
        if now - state["shown"] < (1.0 if terminal else _QUIET_LINE_S):
            return
        state["shown"] = now
        rate = (done - state["first"]) / (now - began)
        left = f", {_clock((total - done) / rate)} left" if rate > 0 else ""
        line = f"{units}: {done:,} of {total:,}, {rate:.1f}/s{left}"
        print(
            f"\r\033[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True
        )

    try:
        yield show
    finally:
        if terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    """Write a duration as hours, minutes and seconds.

    >>> _clock(75), _clock(7260)
    ('1:15', '2:01:00')
    """
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
