"""The one place where a Spark session is made: embedded by default, on any master when asked.

Embedded means `local[*,4]`: every core, and a Python worker that dies is tried again, as on a cluster. Anywhere
else this package is zipped and shipped to the workers, so they run the code that the driver runs; what it needs
(Python, numpy, pyarrow, numba, msgspec) must be installed there. Spark's own chatter goes to a file that
is named when something fails.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, Any, Final

import precede
from precede.core.errors import BadInput, Unavailable
from precede.pipeline.sessions.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMBEDDED: Final = "local[*,4]"
CHATTER: Final = "PRECEDE_SPARK_LOG"
"""An environment variable: where Spark's own log goes (`-` is standard error)."""

_LOOPBACK: Final = re.compile(r"local|spark://(127\.0\.0\.1|localhost)\b")
_MASTER: Final = re.compile(
    r"local|local\[(\*|\d+)(,\d+)?\]|local-cluster\[\d+,\d+,\d+\]|spark://[^/]+:\d+(,[^/]+:\d+)*|yarn|k8s://.+"
)
_QUIET: Final = Path(__file__).parent / "log4j2.properties"
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.task.maxFailures": "4",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.log.level": "ERROR",
}


_LIGHT: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def open_session(
    master: str | None = None,
    conf: Sequence[str] | Mapping[str, str] = (),
    name: str = "precede",
    light: bool = False,
) -> Iterator[SparkSession]:
    """A Spark session for the length of a `with` block; the Java process is gone when the block ends.

    `light` says that the work is Python's and Java only hands it out: an embedded Java then does not spend the
    cores on compiling itself.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    master, settings = read_master(master), read_conf(conf)
    if SparkContext._active_spark_context is not None:
        raise RuntimeError("this process has a Spark session already; use that one")
    with tempfile.TemporaryDirectory(prefix="precede-spark-") as scratch:
        settings = _settings(master, settings, Path(scratch), name)
        if light and is_embedded(master):
            settings["spark.driver.extraJavaOptions"] += f" {_LIGHT}"
        with _environment(master), _chatter(Path(scratch)) as log:
            try:
                gateway = launch_gateway(SparkConf(False).setAll(list(settings.items())), {"stderr": log})
            except Exception as error:
                raise Unavailable(f"Spark did not start: {error}{_cause(log)}") from error
            try:
                context = SparkContext(conf=SparkConf(False).setAll(list(settings.items())), gateway=gateway)
                session = SparkSession(context)
            except BaseException as error:
                said = _explain(error, master, log)
                _close(gateway, log)
                raise said from None  # a Java error cannot be printed once its process is gone
            try:
                yield session
            finally:
                session.stop()
                _close(gateway, log)


def read_master(master: str | None) -> str:
    """A master as Spark writes it; said here, because Spark takes seconds to refuse a misspelt one.

    >>> read_master(None), read_master("spark://127.0.0.1:7077")
    ('local[*,4]', 'spark://127.0.0.1:7077')
    """
    if master is None:
        return EMBEDDED
    if not _MASTER.fullmatch(master):
        known = "local[N], local-cluster[WORKERS,CORES,MEGABYTES], spark://HOST:PORT, yarn, k8s://URL"
        raise BadInput(f"--master {master!r}: Spark has no such master (known: {known})")
    return master


def read_conf(conf: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """`--conf key=value` as a mapping.

    >>> read_conf(["spark.executor.memory=4g"])
    {'spark.executor.memory': '4g'}
    """
    if isinstance(conf, Mapping):
        return dict(conf)
    read: dict[str, str] = {}
    for written in conf:
        key, equals, value = written.partition("=")
        if not equals or not key.startswith("spark."):
            raise BadInput(f"--conf {written!r}: write spark.some.key=value")
        read[key.strip()] = value.strip()
    return read


def is_embedded(master: str) -> bool:
    """Do the tasks run on this machine, in processes that see what the driver sees?"""
    return master == "local" or master.startswith("local[")


def _settings(master: str, conf: Mapping[str, str], scratch: Path, name: str) -> dict[str, str]:
    """Ours, then what the place needs, then what the user said."""
    settings = dict(_SETTINGS)
    settings["spark.master"] = master
    settings["spark.app.name"] = name
    settings["spark.sql.warehouse.dir"] = (scratch / "warehouse").as_uri()
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    if _LOOPBACK.match(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if not is_embedded(master):
        settings["spark.submit.pyFiles"] = str(_zip_package(scratch))
    for key, value in conf.items():
        if key == "spark.driver.extraJavaOptions":
            settings[key] += " " + value
        elif key == "spark.submit.pyFiles" and key in settings:
            settings[key] += "," + value
        else:
            settings[key] = value
    return settings


def _zip_package(scratch: Path) -> Path:
    """This package as one archive that Python can import from."""
    root = Path(precede.__file__).parent
    archive = scratch / "precede.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, path.relative_to(root.parent))
    return archive


@contextmanager
def _environment(master: str) -> Iterator[None]:
    """What Spark reads from the environment, for as long as the session lives."""
    wanted = {"JAVA_HOME": str(find_java_home())}
    wanted.setdefault("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON") or sys.executable)
    wanted["PYTHONWARNINGS"] = "ignore:PySpark does not yet fully support pandas"
    if _LOOPBACK.match(master):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = {key: os.environ.get(key) for key in (*wanted, "SPARK_HOME", "PYSPARK_SUBMIT_ARGS")}
    # another Spark's home or submit arguments would start something else than what is installed here
    for key in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(key, None)
    os.environ.update(wanted)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


@contextmanager
def _chatter(scratch: Path) -> Iterator[IO[bytes]]:
    """Where the Java process writes what nobody asked for."""
    wanted = os.environ.get(CHATTER)
    if wanted == "-":
        yield sys.stderr.buffer
        return
    with open(wanted or scratch / "spark.log", "ab+") as log:
        yield log


def _cause(log: IO[bytes]) -> str:
    """The last line of Spark's log that names an error."""
    if not log.seekable():
        return ""
    log.seek(max(0, log.seek(0, os.SEEK_END) - 100_000))
    said = log.read().decode(errors="replace").splitlines()
    named = [line.strip() for line in said if re.search(r"(Exception|Error|ERROR)\b.*:", line)]
    return f" ({named[-1]})" if named else ""


def _explain(error: BaseException, master: str, log: IO[bytes]) -> BaseException:
    """One line for what went wrong between asking for a session and having it."""
    if not isinstance(error, Exception):
        return error
    text = str(getattr(error, "java_exception", None) or error).strip()
    first = text.splitlines()[0] if text else type(error).__name__
    return Unavailable(f"no Spark session at {master!r}: {first}{_cause(log)}")


def _close(gateway: Any, log: IO[bytes]) -> None:
    """End the Java process and forget it, so that another session can be opened in this process."""
    from py4j.protocol import Py4JNetworkError
    from pyspark import SparkContext

    process: Popen[bytes] | None = getattr(gateway, "proc", None)
    with suppress(OSError, Py4JNetworkError):  # it is gone already where the session never came up
        gateway.shutdown()
    if process is not None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(20)
        except TimeoutExpired:
            process.kill()
            process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
    log.flush()
