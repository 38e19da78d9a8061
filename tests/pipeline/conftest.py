"""One Spark session for each pytest worker: starting one costs more than any test here."""

from __future__ import annotations

import pytest

from precede.pipeline.session import open_session

QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Less compiling for code that runs once."""


@pytest.fixture(scope="session")
def session():
    with open_session("local[2,4]", QUICK) as opened:
        yield opened
