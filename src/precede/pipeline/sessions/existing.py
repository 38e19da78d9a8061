"""Sessions that somebody else decided on: the caller's own, that of `spark-submit`, one of a Connect server.

A session that is already active in this process is used as it is and stays open. Under `spark-submit` the Java
process exists and knows its master, its memory and its Python; our settings only fill what it left open. A
Connect session (`sc://HOST`, or the variable SPARK_REMOTE) needs no Java here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from precede.core.errors import BadInput, Unavailable
from precede.pipeline.sessions.shipping import (
    PYTHONPATH,
    SEPARATORS,
    imports_pack,
    is_embedded,
    pack_settings,
    zip_package,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT = "sc://"


def active_session(master: str | None, conf: Mapping[str, str]) -> SparkSession | None:
    """Return the session that this process already has, or None.

    Raises BadInput if the session contradicts the master or a setting; a Connect URL is not compared.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        return None
    current = session.conf.get("spark.master", "") or ""
    if master is not None and not master.startswith(CONNECT) and master != current:
        raise BadInput(f"--master {master!r}: this process already has a Spark session at {current!r}")
    for key, value in conf.items():
        if session.conf.get(key, None) != value:
            raise BadInput(f"--conf {key}: this process already has a Spark session; set it there")
    return session


def is_submitted() -> bool:
    """Was this process started by `spark-submit`? Then its Java process waits for the connection."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def submitted_session(
    master: str | None, conf: Mapping[str, str], defaults: Mapping[str, str], scratch: Path
) -> Iterator[SparkSession]:
    """Open the session that `spark-submit` describes, for a `with` block, and stop it afterwards.

    Its executors get this package. Raises BadInput if `master` contradicts `spark-submit`.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()  # a SparkConf made before this does not see what spark-submit decided
    settings = SparkConf()
    chosen = settings.get("spark.master", None)
    if master is not None and chosen is not None and master != chosen:
        raise BadInput(f"--master {master!r}: spark-submit already chose {chosen!r}")
    for key, value in defaults.items():
        if not settings.contains(key):
            settings.set(key, value)
    for key, value in conf.items():
        settings.set(key, value)
    embedded = is_embedded(chosen or "local")
    packed = None if embedded else pack_settings(lambda key: settings.get(key, None))
    for key, value in (packed or {}).items():
        present = settings.get(key, None)
        settings.set(key, value if present is None else present + SEPARATORS[key] + value)
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", None) or sys.executable)
    session = SparkSession(SparkContext(conf=settings))
    try:
        if packed is None:
            session.sparkContext.addPyFile(str(zip_package(scratch)))
        yield session
    finally:
        session.stop()


@contextmanager
def connect_session(url: str, conf: Mapping[str, str], scratch: Path) -> Iterator[SparkSession]:
    """Open a session on a Connect server for a `with` block, and stop it afterwards.

    This package is shipped to the server's workers, unless the server has an archive of it. Raises
    Unavailable if the server cannot be used.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(url)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        if not imports_pack(session.conf.get(PYTHONPATH, None)):
            session.addArtifacts(str(zip_package(scratch)), pyfile=True)
    except (PySparkException, OSError, RuntimeError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Unavailable(f"no Spark session at {url!r}: {first}") from None
    try:
        yield session
    finally:
        session.stop()
