"""One Spark session for each pytest worker, because starting one takes longer than any test here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from precede.pipeline.sessions.session import open_session
from precede.protocols import registry

FOREIGN = str(Path(__file__).parent / "foreign")

QUICK = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings for a Java that compiles little: its code runs once."""


@pytest.fixture(scope="session")
def foreign():
    """The folder of a plug-in protocol, `saboteur`, on the path of this process and its workers."""
    sys.path.insert(0, FOREIGN)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = FOREIGN if before is None else f"{FOREIGN}{os.pathsep}{before}"
    registry._foreign.cache_clear()
    yield FOREIGN
    registry._foreign.cache_clear()
    sys.path.remove(FOREIGN)
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="session")
def session(foreign):
    with open_session("local[2,4]", QUICK) as opened:
        yield opened
