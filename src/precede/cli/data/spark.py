"""Options and session of the commands that run on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

from precede.cli.parameters import Option
from precede.cli.progress import working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LakeOption = Annotated[str, Option("--lake", metavar="DIR", help="folder of the lake, or its URL (s3://...)")]
MasterOption = Annotated[
    str | None,
    Option(
        "--master",
        metavar="URL",
        help="Spark master: local[N], spark://HOST:PORT, yarn, k8s://URL (default: here)",
    ),
]
ConfOption = Annotated[
    list[str] | None, Option("--conf", metavar="KEY=VALUE", help="a Spark setting; can be repeated")
]
HereOption = Annotated[
    bool, Option("--here", help="carry out the runs one after the other in this process, without Spark")
]

SameCodeOption = Annotated[
    bool, Option("--same-code", help="run again what other code of the same version left in the lake")
]


@contextmanager
def session_for(
    master: str | None, conf: Sequence[str] | None, name: str, light: bool = False
) -> Iterator[SparkSession]:
    """Open a Spark session for one command; a terminal shows a note during the seconds that it takes."""
    from precede.pipeline.sessions.session import EMBEDDED, open_session

    with ExitStack() as stack:
        with working(f"opening a Spark session at {master or EMBEDDED}"):
            session = stack.enter_context(open_session(master, conf or (), name, light))
        yield session


def by_other_code(count: int) -> list[str]:
    """Return a line about results that other code with the same version number made; none if count is 0."""
    if not count:
        return []
    return [f"  {count:,} of them by other code of this version (--same-code runs them again)"]
