"""A session that the caller, `spark-submit` or a Connect server provides is used, and never replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from precede.core.errors import BadInput
from precede.pipeline.sessions.java import find_java_home
from precede.pipeline.sessions.session import open_session
from tests.pipeline.cluster import Cluster, _free_port, _listens, _wait, kill_tree

SUBMITTED = """
import sys
from precede.pipeline.sessions.session import open_session
from precede.pipeline.sessions.tasks import spread

with open_session(name="ours") as session:
    print(">", session.conf.get("spark.master"), session.conf.get("spark.sql.shuffle.partitions"))
    print(">", spread(session, "ask", lambda number: __import__("sys").executable, 1)[0])
    print(">", spread(session, "ask", lambda number: __import__("precede").__file__, 1)[0])
"""
CONNECTED = """
import os
from precede.pipeline.sessions.session import open_session
from precede.pipeline.sessions.tasks import spread

with open_session() as session:
    print(type(session).__module__, spread(session, "square", lambda number: number * number, 4))
assert "JAVA_HOME" not in os.environ
"""
HOME = Path(pyspark.__file__).parent


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if key not in ("PYSPARK_PYTHON", "SPARK_REMOTE")}
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME)} | more


def submit(folder, *options):
    script = folder / "job.py"
    script.write_text(SUBMITTED)
    command = [str(HOME / "bin" / "spark-submit"), *options, "--conf", "spark.ui.enabled=false", str(script)]
    java = {"JAVA_HOME": str(find_java_home()), "PYSPARK_DRIVER_PYTHON": sys.executable}
    ran = subprocess.run(
        command, env=environment(**java), capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return [line[2:] for line in ran.stdout.splitlines() if line.startswith("> ")]


@pytest.mark.spark
def test_the_session_of_the_caller_is_used_and_stays_open(session):
    with open_session() as opened:
        assert opened is session
    assert session.range(3).count() == 3
    with open_session("local[2,4]", {"spark.sql.session.timeZone": "UTC"}) as opened:
        assert opened is session
    with pytest.raises(BadInput, match=r"already has a Spark session at 'local\[2,4\]'"):
        open_session("local").__enter__()
    with pytest.raises(BadInput, match=r"--conf spark.executor.memory: .* set it there"):
        open_session(None, ["spark.executor.memory=9g"]).__enter__()


@pytest.mark.spark
def test_spark_submit_decides_master_settings_and_python(tmp_path):
    python = tmp_path / "a python"
    python.write_text(f'#!/bin/sh\nexport VIA=wrapper\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    conf = ("--conf", "spark.sql.shuffle.partitions=5", "--conf", f"spark.pyspark.python={python}")
    first, executable, _ = submit(tmp_path, "--master", "local[1,2]", *conf)
    assert first == "local[1,2] 5"
    assert executable == sys.executable


@pytest.mark.long
@pytest.mark.spark
def test_spark_submit_to_a_cluster_uses_that_cluster(tmp_path):
    with Cluster(tmp_path / "cluster", workers=1) as cluster:
        first, _, package = submit(
            tmp_path, "--master", cluster.url, "--conf", f"spark.pyspark.python={sys.executable}"
        )
    assert first.split()[0] == cluster.url
    assert ".zip" in package


@pytest.mark.long
@pytest.mark.spark
def test_a_connect_server_named_by_the_environment_is_used_without_java_here(tmp_path):
    port = _free_port()
    command = [
        *(
            str(HOME / "bin" / "spark-submit"),
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
        ),
        *("--master", "local[2,4]", "--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1", "spark-internal"),
    ]
    settings = environment(JAVA_HOME=str(find_java_home()), PYSPARK_PYTHON=sys.executable)
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=settings, stdout=log, stderr=log, cwd=tmp_path)
    try:
        _wait(lambda: _listens(port), "the Connect server")
        client = {k: v for k, v in environment().items() if k not in ("JAVA_HOME", "SPARK_HOME")}
        client |= {"SPARK_REMOTE": f"sc://127.0.0.1:{port}"}
        ran = subprocess.run(
            [sys.executable, "-c", CONNECTED],
            env=client,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        kill_tree(server.pid)
        server.wait()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split(maxsplit=1) == ["pyspark.sql.connect.session", "[0, 1, 4, 9]\n"]


DESCRIBED = """
import json, urllib.request
from precede.pipeline.sessions.session import open_session
from precede.pipeline.sessions.tasks import spread

with open_session("local[1,4]", ["spark.pyspark.python=%s"]) as session:
    print(spread(session, "sweep buses: simulate 36 runs", lambda n: __import__("os").environ.get("VIA"), 1))
    session.range(3).toArrow()
    context = session.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/jobs"
    jobs = json.load(urllib.request.urlopen(url, timeout=60))
    print(json.dumps(sorted(job.get("description", job["name"]) for job in jobs)))
"""


@pytest.mark.long
@pytest.mark.spark
def test_the_ui_is_on_names_the_jobs_and_the_python_setting_is_honoured(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexport VIA=wrapper\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-c", DESCRIBED % python], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    answers, descriptions = ran.stdout.splitlines()
    assert answers == "['wrapper']"
    assert "sweep buses: simulate 36 runs" in json.loads(descriptions)
    assert any("toArrow" in text for text in json.loads(descriptions))
