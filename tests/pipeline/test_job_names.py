"""Every Spark job that a command starts has a description, which Spark's UI shows."""

from __future__ import annotations

import ast
from pathlib import Path

import precede.pipeline

ACTIONS = {"toArrow", "collect", "toPandas", "toLocalIterator"}


def actions_without_a_description(tree):
    """The lines of actions on DataFrames that are not inside `with described(…)`."""
    inside = {
        id(call)
        for block in ast.walk(tree)
        if isinstance(block, ast.With) and any("described(" in ast.unparse(item) for item in block.items)
        for call in ast.walk(block)
    }
    return [
        call.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ACTIONS
        and ast.unparse(call.func) != "gc.collect"
        and id(call) not in inside
    ]


def test_every_action_on_a_data_frame_has_a_description():
    folder = Path(precede.pipeline.__file__).parent
    found = {
        f"{path.relative_to(folder)}:{line}"
        for path in sorted(folder.rglob("*.py"))
        for line in actions_without_a_description(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


def test_an_action_without_a_description_is_noticed():
    text = "with described(session, 'x'):\n    a.toArrow()\nb.toArrow()\n"
    assert actions_without_a_description(ast.parse(text)) == [3]
