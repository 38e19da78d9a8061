"""The alert rules and the dashboard: Prometheus accepts them, they name metrics that exist, and alerts fire."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import precede
from precede.cli.field.top_look import Looker
from precede.runtime.observe.exposition import samples_of
from precede.witness.live.folder import FolderFollower
from tests.runtime.observe.members import ask, endpoint, pair

FOLDER = Path(__file__).parents[3] / "docs" / "monitoring"
RULES = FOLDER / "alerts.yml"
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus")


@needs_promtool
@pytest.mark.parametrize(
    "command", [("test", "rules", "alerts_test.yml"), ("check", "config", "prometheus.yml")]
)
def test_prometheus_takes_the_configuration_and_alerts_fire_when_they_should(command: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_name_metrics_that_exist(tmp_path):
    async def main() -> str:
        async with pair("ana", "ben", store=None) as (ana, _):
            await ana.broadcast(b"hello")
            return (await ask(endpoint(ana), "/metrics"))[2]

    async def with_store() -> str:
        settings = {"key": None, "store": tmp_path / "ana.store", "metrics": ("127.0.0.1", 0)}
        async with precede.join("picnic", "ana", **settings) as ana:
            return (await ask(endpoint(ana), "/metrics"))[2]

    follower = Looker([], FolderFollower(tmp_path)).families()
    texts = asyncio.run(main()) + asyncio.run(with_store())
    known = {name for name, _, _ in samples_of(texts)} | {family.name for family in follower}
    known |= set(re.findall(r"^# TYPE (\w+)", texts, re.MULTILINE))
    dashboard = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += re.findall(r"expr: (.*)", RULES.read_text(encoding="utf-8"))
    named = {name for text in expressions for name in re.findall(r"\b(?:precede|process)_\w+", text)}
    assert len(expressions) > 20
    assert named <= known


@pytest.mark.long
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's prometheus")
def test_prometheus_scrapes_a_group_and_an_alert_on_a_planted_violation_fires(tmp_path):
    from benchmarks.metrics_soak import soak

    figures = soak(60.0, tmp_path)
    assert figures["violations_before"] == 0
    assert figures["alerts_before"] == []
    assert figures["violations_counted"] == figures["violations_planted"] > 0
