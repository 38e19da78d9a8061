"""`precede.spark` from a client that has no Java, on a Connect server that this test starts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from precede.pipeline.sessions.java import find_java_home
from tests.pipeline.cluster import kill_tree

pytestmark = [pytest.mark.long, pytest.mark.spark]

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CLIENT = """
import json, shutil, sys, warnings
warnings.simplefilter("ignore")
assert shutil.which("java") is None
from pyspark.sql import SparkSession
session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
import precede.spark
runs = session.createDataFrame([("small-office", "unordered", 4)], ["scenario", "protocol", "seed"])
events = precede.spark.simulate(runs, tasks=1)
(verdict,) = precede.spark.verify(events, "causal", partitions=2).collect()
measured = {row.measure: row.value for row in precede.spark.measure(events).collect()}
rows = [("road", node, at, float(x), 0.0) for node, x in (("a", 0), ("b", 50)) for at in (0, 10_000_000)]
positions = session.createDataFrame(rows, ["trace", "node", "t_us", "x", "y"])
met = precede.spark.contacts(precede.spark.segments(positions), 60.0).collect()
assert "py4j" not in sys.modules or not session.__module__.startswith("pyspark.sql.classic")
print(json.dumps([verdict.verdict, verdict.violations, measured["deliveries"], len(met)]))
"""


@pytest.fixture
def server(tmp_path):
    """The URL of a Connect server in a process of its own."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"JAVA_HOME": str(find_java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    settings = {"spark.connect.grpc.binding.port": str(port), "spark.ui.enabled": "false"}
    settings |= {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen([*command, "spark-internal"], env=environment, stdout=log, stderr=log)
        try:
            _wait(port, process, tmp_path / "server.log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            kill_tree(process.pid)


def _wait(port, process, log):
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text()
        time.sleep(0.5)
    raise AssertionError(log.read_text())


def test_a_client_without_java_gets_the_answers_of_one_process(server, tmp_path):
    import precede

    client = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", CLIENT, server],
        env=client,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    alone = precede.simulate("small-office", "unordered", 4)
    verdict = alone.verify("causal")
    expected = [verdict.verdict, verdict.violations, alone.measures()["deliveries"], 1]
    assert json.loads(ran.stdout.splitlines()[-1]) == expected
