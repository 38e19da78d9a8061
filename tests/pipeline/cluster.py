"""A standalone Spark cluster on loopback: a master and workers with one core each."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyspark

from precede.pipeline.sessions.java import find_java_home


class Cluster:
    """The processes of the cluster; they end with the `with` block."""

    def __init__(self, folder, workers=2):
        self.folder, self.count = Path(folder), workers
        self.port = _free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.workers = []

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.master = self._start("master.Master", "--port", str(self.port), "--webui-port", str(_free_port()))
        _wait(lambda: _listens(self.port), "the master")
        for number in range(self.count):
            work = self.folder / f"work{number}"
            place = ("-c", "1", "-m", "1g", "-d", str(work), "--webui-port", str(_free_port()))
            self.workers.append(self._start("worker.Worker", *place, self.url))
        return self

    def __exit__(self, *_):
        for process in [*self.workers, self.master]:
            kill_tree(process.pid)
            process.wait()

    def _start(self, name, *arguments):
        home = Path(pyspark.__file__).parent
        environment = dict(os.environ) | {
            "JAVA_HOME": str(find_java_home()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "300m",
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": sys.executable,
        }
        environment.pop("PYTHONPATH", None)  # a worker must get this package from the driver
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
        log = (self.folder / f"{name}-{len(self.workers)}.log").open("wb")
        with log:
            return subprocess.Popen(
                [*command, *arguments],
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def worker_of(self, pid):
        """The worker that is an ancestor of a process."""
        parents = {process.pid for process in psutil.Process(pid).parents()}
        return next(worker for worker in self.workers if worker.pid in parents)


def kill_tree(pid):
    """Send SIGKILL to a process and all its descendants; the root first, so that it starts no new ones."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(condition, what, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come up in {seconds} s")
        time.sleep(0.1)
