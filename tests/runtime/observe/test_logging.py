"""Log lines have fields, one line for each noteworthy thing; OpenTelemetry gets metrics and spans."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys

import pytest

import precede
from precede.runtime.observe.json_lines import JsonFormatter
from tests.runtime.observe.members import pair


def test_a_life_is_a_few_lines_with_fields(caplog):
    caplog.set_level(logging.INFO, "precede")

    async def main() -> None:
        async with pair("ana", "ben") as (ana, ben):
            for _ in range(50):
                await ana.broadcast(b"hello")
            await anext(aiter(ben))
            await ben.close()
            while ana.neighbours():
                await asyncio.sleep(0.01)

    asyncio.run(main())
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    of_ana = [(line["event"], line.get("peer")) for line in lines if line["member"] == "ana"]
    assert of_ana == [("joined", None), ("link_up", "ben"), ("link_down", "ben"), ("closed", None)]
    assert all(line["group"] == "picnic" and line["text"].startswith("picnic/") for line in lines)
    assert len(lines) == 7  # ben has no link_down: it closed first


def test_a_crash_is_told_once(caplog):
    caplog.set_level(logging.INFO, "precede")

    async def main() -> None:
        ana = await precede.join("picnic", "ana", key=None).__aenter__()
        await ana.crash()

    asyncio.run(main())
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert [line["event"] for line in lines] == ["joined", "crashed"]


def test_the_command_writes_json_lines():
    command = [sys.executable, "-m", "precede", "node", 'a"na', "--open", "--linger", "0.1"]
    ended = subprocess.run(
        [*command, "--log-format", "json", "--metrics", "127.0.0.1:0"],
        input="hello\n",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(line["event"], line["member"], line["level"]) for line in lines] == [
        ("joined", 'a"na', "info"),
        ("closed", 'a"na', "info"),
    ]


def test_opentelemetry_reads_metrics_and_spans():
    metrics_sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    metrics.set_meter_provider(metrics_sdk.MeterProvider([reader]))
    trace.set_tracer_provider(tracing)

    async def main() -> dict[str, float]:
        async with precede.join("picnic", "ana", key=None) as ana:
            await ana.broadcast(b"hello")
            await asyncio.sleep(1.1)
            data = reader.get_metrics_data()
        return {
            metric.name: point.value
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
            if point.attributes.get("member") == "ana"
        }

    points = asyncio.run(main())
    assert points["precede_deliveries_total"] == points["precede_broadcasts_total"] == 1
    assert points["process_cpu_seconds_total"] > 0
    finished = [(span.name, span.status.is_ok) for span in spans.get_finished_spans()]
    assert finished == [("precede.broadcast", True), ("precede.deliver", True)]


def test_without_opentelemetry_nothing_of_it_is_imported():
    program = """
import asyncio, sys
sys.modules["opentelemetry"] = None
import precede
async def main():
    async with precede.join("picnic", "ana", key=None) as ana:
        await ana.broadcast(b"hello")
        print((await anext(aiter(ana))).payload)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "b'hello'\n"
