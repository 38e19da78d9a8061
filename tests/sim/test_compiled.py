"""Compiled and plain code give the same swarm worlds for every protocol, row for row."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
from msgspec import Struct

from precede.core.compiling import is_compiled
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.proxy_host import ProxyHost
from precede.protocols.cells.proxy_station import ProxyStation
from precede.protocols.layered.node import LayeredNode

ROOT = Path(__file__).parents[2]
MODULES = (ROOT / "compiled.txt").read_text().split()
SEEDS = 4

SCRIPT = f"""
import hashlib, json
import pyarrow as pa
from precede.eventlog.sinks import TableSink
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from precede.protocols import registry
import precede.sim.fast_path

results = {{"module": precede.sim.fast_path.__file__}}
for protocol in registry.names():
    drawer = find_drawer(protocol)
    for seed in range({SEEDS}):
        sink = TableSink()
        result = run_plan(draw_plan(protocol, seed, drawer), drawer, log=sink)
        rows = pa.BufferOutputStream()
        table = sink.events().combine_chunks()
        with pa.ipc.new_stream(rows, table.schema) as stream:
            stream.write_table(table)
        digest = hashlib.sha256(rows.getvalue()).hexdigest()
        results[f"{{protocol}} {{seed}}"] = [table.num_rows, digest, repr(result)]
print(json.dumps(results))
"""


def name_of(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").replace("/", ".")


def worlds(source: Path) -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True, timeout=200
    )
    return dict(json.loads(done.stdout))


def test_every_listed_module_exists() -> None:
    assert sorted(MODULES) == MODULES
    for path in MODULES:
        assert (ROOT / path).is_file(), path


@pytest.mark.slow
def test_compiled_and_plain_worlds_are_the_same(tmp_path: Path) -> None:
    modules = [path for path in MODULES if not Path(path).name.startswith("machine_")]
    if not is_compiled(import_module("precede.sim.fast_path")):
        pytest.skip("not compiled here: no C compiler, or `make compile` was not run")
    assert [path for path in modules if not is_compiled(import_module(name_of(path)))] == []
    plain = tmp_path / "src"
    shutil.copytree(ROOT / "src", plain, ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    compiled_worlds, plain_worlds = worlds(ROOT / "src"), worlds(plain)
    assert str(compiled_worlds.pop("module")).endswith(".so")
    assert str(plain_worlds.pop("module")).endswith("fast_path.py")
    assert [world for world in compiled_worlds if compiled_worlds[world] != plain_worlds[world]] == []
    assert len(compiled_worlds) > 50


def test_no_compiled_module_has_a_struct() -> None:
    """mypyc drops the types of a struct's fields: msgspec then decodes lists where tuples are declared."""
    for path in MODULES:
        module = import_module(name_of(path))
        own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
        assert not [value for value in own if isinstance(value, type) and issubclass(value, Struct)], path


def test_nodes_of_different_protocols_are_told_apart() -> None:
    """Compiled subclasses of an abstract base class share its cache of `isinstance`."""
    station = registry.make("ck", "station", Context(0, (0, 1), ProxyOptions(), Random(1)))
    assert isinstance(station, ProxyStation)
    assert not isinstance(station, ProxyHost | LayeredNode)
