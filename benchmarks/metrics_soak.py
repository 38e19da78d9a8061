"""Debian's Prometheus scrapes a real group while it talks; then a violation is planted, and an alert must fire.

Members run as processes (`precede node`), each with metrics and an event log. `precede top --log` verifies the
logs as they grow and is scraped too. After the soak the log of a group that misorders is added to the folder:
a run of the protocol `unordered` over links that reorder. The time from the planted log to the firing alert is
reported.

python -m benchmarks.metrics_soak --json            (--seconds 20 by default; an hour: --seconds 3600)
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RULES = Path(__file__).parent.parent / "docs" / "monitoring" / "alerts.yml"
NAMES = ("ana", "ben", "cem")
SCRAPE_S = 1
PATIENCE_S = 60


def free_ports(count: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
    """Ports of loopback that were free a moment ago."""
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def running(commands: list[list[str]], folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that end with the block, whatever happens in it."""
    started = []
    try:
        for number, command in enumerate(commands):
            log = (folder / f"process-{number}.log").open("wb")
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log))
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(20)


def node(name: str, at: int, peers: list[int], metrics: int, folder: Path, keys: Path) -> list[str]:
    """The command of a member that writes a file of its log every second."""
    command = [sys.executable, "-m", "precede", "node", name, "--keys", str(keys), "--group", "soak"]
    command += ["--bind", f"127.0.0.1:{at}", "--metrics", f"127.0.0.1:{metrics}"]
    command += ["--log", str(folder / "logs" / name), "--segment", "1"]
    return command + [word for peer in peers for word in ("--peer", f"127.0.0.1:{peer}")]


def configure(folder: Path, targets: list[int]) -> Path:
    """Write the configuration of Prometheus: our rules, and every member and the follower as targets."""
    shutil.copy(RULES, folder / "alerts.yml")
    addresses = ", ".join(f"'127.0.0.1:{port}'" for port in targets)
    path = folder / "prometheus.yml"
    path.write_text(
        f"global: {{scrape_interval: {SCRAPE_S}s, evaluation_interval: {SCRAPE_S}s}}\n"
        "rule_files: [alerts.yml]\n"
        f"scrape_configs: [{{job_name: precede, static_configs: [{{targets: [{addresses}]}}]}}]\n",
        encoding="utf-8",
    )
    return path


def ask(port: int, path: str, **query: str) -> Any:
    """Ask Prometheus' HTTP interface; None while it does not answer."""
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def value(port: int, expression: str) -> float:
    """The value of an expression, 0 if it has none."""
    answer = ask(port, "query", query=expression)
    return float(answer["result"][0]["value"][1]) if answer and answer["result"] else 0.0


def wait_for(condition: Callable[[], bool], what: str) -> float:
    """Wait until a condition holds and return the seconds that it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + PATIENCE_S:
            raise TimeoutError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.2)
    return time.monotonic() - began


def plant_violation(folder: Path) -> int:
    """Add the log of a run without order, in which causal order is violated; return how often it is."""
    import pyarrow.parquet as pq

    import precede
    from precede.eventlog.sinks import TableSink
    from precede.experiments.run import Run, carry_out

    sink = TableSink()
    world = {"kind": "point_to_point", "nodes": 4, "delay": "exponential(0.5)"}
    workload = {"poisson": "200ms", "until": "10s", "size": 20}
    carry_out(Run(world=world, workload=workload, protocol="unordered", seed=1, end="20s"), sink)
    (folder / "logs" / "planted").mkdir()
    temporary = folder / "planted.parquet"
    pq.write_table(sink.events(), temporary)
    violations = int(precede.verify(temporary, order="causal").violations)
    temporary.rename(folder / "logs" / "planted" / "events.parquet")
    return violations


def soak(seconds: float, folder: Path) -> dict[str, Any]:
    """Run everything and return the figures."""
    udp, ports = free_ports(len(NAMES), socket.SOCK_DGRAM), free_ports(len(NAMES) + 2)
    *metrics, followed, prometheus = ports
    keys = folder / "soak.keys"
    subprocess.run(
        [sys.executable, "-m", "precede", "keys", "make", str(keys)], check=True, capture_output=True
    )
    (folder / "logs").mkdir()
    config = configure(folder, [*metrics, followed])
    commands = [
        node(name, at, [peer for peer in udp if peer != at], port, folder, keys)
        for name, at, port in zip(NAMES, udp, metrics, strict=True)
    ]
    top = [sys.executable, "-m", "precede", "top", *(f"127.0.0.1:{port}" for port in metrics), "--every", "1"]
    commands.append([*top, "--log", str(folder / "logs"), "--metrics", f"127.0.0.1:{followed}"])
    server = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    commands.append([*server, f"--web.listen-address=127.0.0.1:{prometheus}", "--log.level=warn"])
    with running(commands, folder) as processes:
        wait_for(lambda: value(prometheus, "sum(up)") == len(NAMES) + 1, "every target is scraped")
        wait_for(lambda: value(prometheus, "min(precede_neighbours)") == len(NAMES) - 1, "all hear each other")
        sent, ends = 0, time.monotonic() + seconds
        while time.monotonic() < ends:
            for process in processes[: len(NAMES)]:
                assert process.stdin is not None
                process.stdin.write(b"message %d\n" % sent)
                process.stdin.flush()
                sent += 1
            time.sleep(0.1)
        everywhere = sent * len(NAMES)
        wait_for(lambda: value(prometheus, "sum(precede_deliveries_total)") == everywhere, "all is delivered")
        wait_for(lambda: value(prometheus, "precede_follow_deliveries_total") == everywhere, "all is verified")
        quiet = value(prometheus, "sum(precede_follow_violations_total)")
        alerts_before = firing(prometheus)
        planted = plant_violation(folder)
        fired_after = wait_for(lambda: "PrecedeOrderViolated" in firing(prometheus), "the alert fires")
        counted = value(prometheus, "sum(precede_follow_violations_total)")
        samples = value(prometheus, "sum(count_over_time(precede_waiting[1d]))")
    return {
        "seconds": seconds,
        "members": len(NAMES),
        "messages": sent,
        "deliveries_scraped": everywhere,
        "samples_of_one_metric": samples,
        "violations_before": quiet,
        "alerts_before": alerts_before,
        "violations_planted": planted,
        "violations_counted": counted,
        "alert_fired_after_s": round(fired_after, 1),
    }


def firing(port: int) -> list[str]:
    """The names of the alerts that fire."""
    answer = ask(port, "alerts") or {"alerts": []}
    return sorted({each["labels"]["alertname"] for each in answer["alerts"] if each["state"] == "firing"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if shutil.which("prometheus") is None:
        sys.exit("benchmarks.metrics_soak needs Debian's prometheus: apt-get install prometheus")
    with tempfile.TemporaryDirectory() as folder:
        figures = soak(given.seconds, Path(folder))
    print(json.dumps(figures) if given.json else "\n".join(f"{key}: {figures[key]}" for key in figures))


if __name__ == "__main__":
    main()
