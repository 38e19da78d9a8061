"""Opens a Spark session: embedded by default, or on the master that the caller names.

A session that the caller already has, or that `spark-submit` or SPARK_REMOTE describe, comes first
(`sessions.existing`). Embedded means `local[*,4]`: all cores, and a task whose Python worker dies is tried
again, as on a cluster. On a cluster this package is shipped to the workers, so they run the same code as the
driver (`sessions.shipping`). Spark's own log goes to a file; its last error is part of the message when the
session does not start.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, Any, Final

from precede.core.errors import BadInput, Unavailable
from precede.lake.storage import ENVIRONMENT
from precede.pipeline.sessions.existing import (
    CONNECT,
    active_session,
    connect_session,
    is_submitted,
    submitted_session,
)
from precede.pipeline.sessions.java import find_java_home
from precede.pipeline.sessions.shipping import SEPARATORS, is_embedded, pack_settings, zip_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMBEDDED: Final = "local[*,4]"
SPARK_LOG: Final = "PRECEDE_SPARK_LOG"
"""An environment variable: the file for Spark's own log (`-` is standard error)."""

_LOOPBACK: Final = re.compile(r"local|spark://(127\.0\.0\.1|localhost)\b")
_MASTER: Final = re.compile(
    r"local|local\[(\*|\d+)(,\d+)?\]|local-cluster\[\d+,\d+,\d+\]|spark://[^/]+:\d+(,[^/]+:\d+)*|yarn|k8s://.+"
    r"|sc://.+"
)
_LOG_SETTINGS: Final = Path(__file__).parent / "log4j2.properties"
_SETTINGS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.task.maxFailures": "4",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.log.level": "ERROR",
}
_LIGHT: Final = "-XX:TieredStopAtLevel=1"
_COLLECTOR: Final = "-XX:+UseSerialGC"
_JAVA_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


@contextmanager
def open_session(
    master: str | None = None,
    conf: Sequence[str] | Mapping[str, str] = (),
    name: str = "precede",
    light: bool = False,
) -> Iterator[SparkSession]:
    """Open a Spark session for a `with` block, and stop it at the end of the block.

    There are four cases, in this order. A session that is already active in this process is used and stays
    open. A Connect URL, from `master` or SPARK_REMOTE, opens a session on that server. Under `spark-submit` its
    session is used. Otherwise a Java process is started, which ends with the block.

    Use `light` when Java only distributes work to Python: a Java that we start then compiles its own code less,
    and leaves the cores to the tasks. Raises BadInput for a bad option, Unavailable if the session does not
    start.
    """
    settings = read_conf(conf)
    chosen = None if master is None else read_master(master)
    existing = active_session(chosen, settings)
    if existing is not None:
        yield existing
        return
    remote = chosen if chosen is not None else os.environ.get("SPARK_REMOTE")
    with tempfile.TemporaryDirectory(prefix="precede-spark-") as folder:
        scratch = Path(folder)
        if remote is not None and remote.startswith(CONNECT):
            opened = connect_session(remote, settings, scratch)
        elif is_submitted():
            defaults = {**_SETTINGS, **_storage_settings(""), "spark.app.name": name}
            opened = submitted_session(chosen, settings, defaults, scratch)
        else:
            opened = _launched_session(read_master(chosen), settings, scratch, name, light)
        with opened as session:
            yield session


@contextmanager
def _launched_session(
    master: str, conf: Mapping[str, str], scratch: Path, name: str, light: bool
) -> Iterator[SparkSession]:
    """Start a Java process with a session, and end both after the block; else Unavailable with the cause."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    settings = _settings(master, conf, scratch, name, light)
    with _environment(master, settings.get("spark.pyspark.python")), _spark_log(scratch) as log:
        try:
            gateway = launch_gateway(SparkConf(False).setAll(list(settings.items())), {"stderr": log})
        except Exception as error:
            raise Unavailable(f"Spark did not start: {error}{_cause(log)}") from error
        try:
            everything = {**settings, **_storage_settings(master)}
            context = SparkContext(conf=SparkConf(False).setAll(list(everything.items())), gateway=gateway)
            session = SparkSession(context)
        except BaseException as error:
            explained = _explain(error, master, log)
            _close(gateway, log)
            raise explained from None  # a Java error cannot be printed once its process is gone
        try:
            yield session
        finally:
            session.stop()
            _close(gateway, log)


def read_master(master: str | None) -> str:
    """Check a master URL and return it; None becomes the embedded master.

    Raises BadInput for a misspelt one at once, which takes Spark itself seconds.

    >>> read_master(None), read_master("spark://127.0.0.1:7077")
    ('local[*,4]', 'spark://127.0.0.1:7077')
    """
    if master is None:
        return EMBEDDED
    if not _MASTER.fullmatch(master):
        forms = (
            "local[N], local-cluster[WORKERS,CORES,MEGABYTES], spark://HOST:PORT, yarn, k8s://URL, sc://HOST"
        )
        raise BadInput(f"--master {master!r}: Spark has no such master (known: {forms})")
    return master


def read_conf(conf: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Parse `--conf key=value` options.

    >>> read_conf(["spark.executor.memory=4g"])
    {'spark.executor.memory': '4g'}
    """
    if isinstance(conf, Mapping):
        return dict(conf)
    settings: dict[str, str] = {}
    for option in conf:
        key, equals, value = option.partition("=")
        if not equals or not key.startswith("spark."):
            raise BadInput(f"--conf {option!r}: write spark.some.key=value")
        settings[key.strip()] = value.strip()
    return settings


def _settings(
    master: str, conf: Mapping[str, str], scratch: Path, name: str, light: bool = False
) -> dict[str, str]:
    """Return all settings: our defaults, then those the master needs, then the user's."""
    settings = dict(_SETTINGS)
    settings["spark.master"] = master
    settings["spark.app.name"] = name
    settings["spark.sql.warehouse.dir"] = (scratch / "warehouse").as_uri()
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    if light:
        options = _light_options(conf)
        settings["spark.driver.extraJavaOptions"] += f" {options}"
        settings["spark.executor.extraJavaOptions"] = options
    if _LOOPBACK.match(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if not is_embedded(master):
        packed = pack_settings(conf.get)
        settings |= {"spark.submit.pyFiles": str(zip_package(scratch))} if packed is None else packed
    for key, value in conf.items():
        is_list = key in SEPARATORS and key in settings
        settings[key] = settings[key] + SEPARATORS[key] + value if is_list else value
    return settings


def _light_options(conf: Mapping[str, str]) -> str:
    """Return the options of a Java that mostly distributes work. Java refuses a collector beside the user's."""
    written = [conf.get(f"spark.{which}.extraJavaOptions", "") for which in ("driver", "executor")]
    written += [os.environ.get(variable, "") for variable in _JAVA_VARIABLES]
    has_collector = re.search(r"-XX:\+Use\w*GC\b", " ".join(written))
    return _LIGHT if has_collector else f"{_LIGHT} {_COLLECTOR}"


def _storage_settings(master: str) -> dict[str, str]:
    """Return settings that pass the variables of object stores (endpoint, credentials) on to the executors.

    They are given to the context only: the command line of the Java process can be read by other users.
    """
    if is_embedded(master):
        return {}
    variables = {name: value for name, value in os.environ.items() if ENVIRONMENT.match(name)}
    return {f"spark.executorEnv.{name}": value for name, value in variables.items()}


@contextmanager
def _environment(master: str, python: str | None) -> Iterator[None]:
    """Set the environment variables that Spark reads, while the session is open."""
    variables = {"JAVA_HOME": str(find_java_home())}
    variables["PYSPARK_PYTHON"] = python or os.environ.get("PYSPARK_PYTHON") or sys.executable
    variables["PYTHONWARNINGS"] = "ignore:PySpark does not yet fully support pandas"
    if _LOOPBACK.match(master):
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    # the home or submit arguments of another Spark would start that one instead of the one Python imports
    foreign = ["PYSPARK_SUBMIT_ARGS"] if _is_home_of_pyspark() else ["PYSPARK_SUBMIT_ARGS", "SPARK_HOME"]
    before = {key: os.environ.get(key) for key in (*variables, *foreign)}
    for key in foreign:
        os.environ.pop(key, None)
    os.environ.update(variables)
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


def _is_home_of_pyspark() -> bool:
    """Does SPARK_HOME hold the pyspark that is imported, as on a vendor's machine?"""
    import pyspark

    home = os.environ.get("SPARK_HOME")
    return home is not None and Path(home).resolve() in Path(pyspark.__file__).resolve().parents


@contextmanager
def _spark_log(scratch: Path) -> Iterator[IO[bytes]]:
    """Open the file that receives the output of the Java process."""
    chosen = os.environ.get(SPARK_LOG)
    if chosen == "-":
        yield sys.stderr.buffer
        return
    with open(chosen or scratch / "spark.log", "ab+") as log:
        yield log


def _cause(log: IO[bytes]) -> str:
    """Return the last line of Spark's log that names an error, in parentheses; empty if there is none."""
    if not log.seekable():
        return ""
    log.seek(max(0, log.seek(0, os.SEEK_END) - 100_000))
    lines = log.read().decode(errors="replace").splitlines()
    errors = [line.strip() for line in lines if re.search(r"(Exception|Error|ERROR)\b.*:", line)]
    return f" ({errors[-1]})" if errors else ""


def _explain(error: BaseException, master: str, log: IO[bytes]) -> BaseException:
    """Return an Unavailable that explains in one line why a session did not start."""
    if not isinstance(error, Exception):
        return error
    text = str(getattr(error, "java_exception", None) or error).strip()
    first = text.splitlines()[0] if text else type(error).__name__
    return Unavailable(f"no Spark session at {master!r}: {first}{_cause(log)}")


def _close(gateway: Any, log: IO[bytes]) -> None:
    """End the Java process and reset pyspark, so that this process can open another session."""
    from py4j.protocol import Py4JNetworkError
    from pyspark import SparkContext

    process: Popen[bytes] | None = getattr(gateway, "proc", None)
    with suppress(OSError, Py4JNetworkError):  # the process has already ended if the session did not start
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
