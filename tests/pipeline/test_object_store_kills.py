"""The pipeline on S3, local and on a cluster: after kills and beside a second driver, the same rows.

The commands run in processes of their own, and kills are SIGKILL.
"""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from precede.cli import main
from precede.lake.layout import Lake
from precede.pipeline.sweeps.marks import Marks
from precede.pipeline.sweeps.simulate import RUNS
from tests.lake.object_store import BUCKET, object_store
from tests.lake.test_object_store import SCENARIO, WALK, rows_of
from tests.pipeline.cluster import Cluster, kill_tree

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1500)]

SPEC = """
[sweep]
scenario = "walk.toml"
protocol = ["causal_barrier", "unordered", "fifo"]
seeds = 4
[set]
every = "20ms"
"""
RUN_COUNT = 12


@pytest.fixture(scope="module")
def store():
    with object_store() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The folder with trace, scenario and sweep, and the rows that a lake in a folder has."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "walk.csv").write_text(WALK)
    (folder / "walk.toml").write_text(SCENARIO)
    (folder / "spec.toml").write_text(SPEC)
    lake = str(folder / "lake")
    prepare(folder, lake)
    assert precede("sweep", folder / "spec.toml", "--lake", lake).wait() == 0
    return folder, rows_of(lake)


def precede(*arguments):
    command = [sys.executable, "-c", "import sys; from precede.cli import main; sys.exit(main())"]
    return subprocess.Popen(
        [*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def prepare(folder, location):
    lake = ("--lake", location)
    assert main(["ingest", str(folder / "walk.csv"), "--as", "positions", *lake]) == 0
    assert main(["contacts", "walk", "--range", "12", *lake]) == 0


def finished(location):
    return Lake(location).facts(RUNS)


def wait_for(condition, process):
    until = time.monotonic() + 900
    while not (found := condition()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def check(folder, location, expected, master, capsys):
    """The lake has the expected rows, its files are intact, and its runs get the same verdict on Spark."""
    assert rows_of(location) == expected
    assert main(["lake", "check", "--lake", location]) == 0
    capsys.readouterr()
    verify = precede("verify", f"{location}/events", "--by", "run_id", "--master", master)
    there, _ = verify.communicate()
    main(["verify", f"{folder / 'lake'}/events", "--by", "run_id"])
    here = capsys.readouterr().out
    assert there.splitlines()[1:] == here.splitlines()[1:]
    assert main(["report", "--lake", location, "--out", str(folder / "site"), "--events", "50"]) == 0


def busy_worker(cluster, location):
    """A worker of the cluster that has committed a run while it is at another one."""
    marks = Marks(Lake(location))
    assert len(marks.facts) < RUN_COUNT - 1, "the runs were over before a worker could be killed"
    for run_id in marks.facts:
        pid = int(marks.read(run_id).get("worker", ":0").rsplit(":", 1)[1])
        if pid and psutil.pid_exists(pid) and psutil.Process(pid).children():
            return cluster.worker_of(pid)
    return None


def test_a_killed_driver_is_continued(store, inputs, capsys):
    folder, expected = inputs
    location = f"{BUCKET}/driver"
    prepare(folder, location)
    first = precede("sweep", folder / "spec.toml", "--lake", location, "--master", "local[2,4]")
    wait_for(lambda: len(finished(location)) >= 2, first)
    kill_tree(first.pid)
    first.wait()
    before = {run_id: bytes(fact.raw) for run_id, fact in finished(location).items()}
    assert len(before) < RUN_COUNT
    second = precede("sweep", folder / "spec.toml", "--lake", location, "--master", "local[2,4]")
    out, err = second.communicate()
    assert second.returncode == 0, err
    assert f"({len(before)} were finished before)" in out
    after = finished(location)
    assert {run_id: bytes(after[run_id].raw) for run_id in before} == before
    check(folder, location, expected, "local[2,4]", capsys)


def test_a_cluster_loses_a_worker_while_two_drivers_run(store, inputs, tmp_path, capsys):
    folder, expected = inputs
    location = f"{BUCKET}/cluster"
    prepare(folder, location)
    with Cluster(tmp_path / "cluster") as cluster:
        arguments = ("sweep", folder / "spec.toml", "--lake", location)
        first = precede(*arguments, "--master", cluster.url)
        try:
            victim = wait_for(lambda: busy_worker(cluster, location), first)
            second = precede(*arguments, "--master", "local[1,4]")
            kill_tree(victim.pid)
            out, err = first.communicate()
            assert first.returncode == 0, err
            out, err = second.communicate()
            assert second.returncode == 0, err
            assert f"{RUN_COUNT} runs" in out
            check(folder, location, expected, cluster.url, capsys)
        finally:
            kill_tree(first.pid)
