"""A mutant is noticed by the tests that run it: probes, the swap of code, the choice of tests, the draw."""

from __future__ import annotations

import builtins
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.mutants.__main__ import draw
from tests.mutants.coverage_map import Covered, Finished, Map
from tests.mutants.making import Mutant, find_mutants
from tests.mutants.probes import with_probes
from tests.mutants.running import append
from tests.mutants.swapping import swap

TEXT = '''"""A module."""
LIMIT = 3

class Counter:
    def __init__(self):
        self.count = 0

    @property
    def full(self):
        return self.count >= LIMIT

    @full.setter
    def full(self, value):
        if value:
            self.count = LIMIT
        elif self.count > LIMIT:
            self.count = 0
'''


@pytest.fixture
def mutants(tmp_path: Path) -> dict[tuple[int, str], Mutant]:
    (tmp_path / "module.py").write_text(TEXT)
    return {(one.line, one.kind): one for one in find_mutants(tmp_path / "module.py", tmp_path)}


def load(mutants: list[Mutant], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], set[str]]:
    hits: set[str] = set()
    monkeypatch.setattr(builtins, "__mutant_hit__", hits.add, raising=False)
    module: dict[str, Any] = {"__name__": "module"}
    exec(with_probes(TEXT, "module.py", mutants), module)
    hits.clear()
    return module, hits


def test_a_probe_names_the_mutants_whose_statement_runs(
    mutants: dict[tuple[int, str], Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, resetting, limit = (
        mutants[10, "comparison"],
        mutants[17, "statement dropped"],
        mutants[2, "constant"],
    )
    module, hits = load([reading, resetting, limit], monkeypatch)
    counter = module["Counter"]()
    assert hits == {limit.name}
    assert not counter.full
    assert hits == {limit.name, reading.name}
    hits.clear()
    counter.count = 5
    counter.full = False
    assert counter.count == 0
    assert hits == {limit.name, resetting.name}


def test_a_swap_changes_a_loaded_function_and_says_when_it_cannot(
    mutants: dict[tuple[int, str], Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = load([], monkeypatch)
    full = module["Counter"].full
    functions: list[FunctionType] = [module["Counter"].__init__, full.fget, full.fset]
    counter = module["Counter"]()
    counter.count = 3
    assert counter.full
    assert swap(functions, mutants[10, "comparison"], TEXT, "module.py")
    assert not counter.full
    assert swap(functions, mutants[15, "statement dropped"], TEXT, "module.py")
    counter.count = 1
    counter.full = True
    assert counter.count == 1
    assert not swap(functions, mutants[2, "constant"], TEXT, "module.py")


def test_tests_nearby_come_first_and_each_test_before_the_second_case_of_another(
    tmp_path: Path, mutants: dict[tuple[int, str], Mutant]
) -> None:
    bent = mutants[10, "comparison"]
    mutant = Mutant(
        bent.name, "src/precede/sim/queue.py", *(getattr(bent, name) for name in bent.__struct_fields__[2:])
    )
    times = {"tests/a/test_a.py::t[1]": 0.1, "tests/a/test_a.py::t[2]": 0.2, "tests/a/test_b.py::t": 0.3}
    times |= {"tests/sim/test_c.py::t": 1.0, "tests/a/test_d.py::t": 99.0}
    path = tmp_path / "map.jsonl"
    for test, seconds in times.items():
        append(path, Covered(test, True, seconds, seconds, [mutant.name]))
    append(path, Covered("tests/a/test_broken.py::t", False, 0.1, 0.1, [mutant.name]))
    append(path, Finished("module.py", "of an earlier text"))
    known = Map(path, tmp_path)
    assert known.tests_of(mutant, set(), 8.0) == [
        "tests/a/test_a.py::t[1]",
        "tests/sim/test_c.py::t",
        "tests/a/test_b.py::t",
        "tests/a/test_a.py::t[2]",
    ]
    assert known.lacks("module.py")
    known.finish("module.py")
    assert not Map(path, tmp_path).lacks("module.py")


def test_a_mutant_is_drawn_by_its_own_name_whatever_else_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.__main__.AREAS", {"sim": 1})
    few, many = draw(100, 1, None), draw(200, 1, None)
    assert {one.name for one in few} < {one.name for one in many}
