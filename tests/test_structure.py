"""The shape of the source: sizes of files, functions and packages, and import cycles with typing imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_import_rules import imports_of

SOURCE = Path(__file__).parent.parent / "src" / "precede"
MOST_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_MODULES = 20
LARGEST_CYCLE = 2

LONG_FUNCTIONS: dict[str, str] = {
    "precede.api:join": "its parameters and what each of them means; the body is short",
    "precede.cli.field.node:command": "the options of the command, one on each line; the body is one call",
}
"""Functions that may be longer, as `module:function`, each with the reason."""


def modules() -> dict[str, Path]:
    """Every module by its dotted name; a package is the name of its folder."""
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules()


def test_no_file_is_too_long() -> None:
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every function of a module with its number of lines, decorators excluded."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_no_function_is_too_long() -> None:
    long = {
        f"{name}:{function}": lines
        for name, path in MODULES.items()
        for function, lines in functions(ast.parse(path.read_text(encoding="utf-8")))
        if lines > MOST_FUNCTION_LINES
    }
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}
    assert [name for name in LONG_FUNCTIONS if name not in long] == [], "no longer an exception"


def test_no_package_has_too_many_modules_on_one_level() -> None:
    crowded = {
        str(folder.relative_to(SOURCE)): count
        for folder in sorted({path.parent for path in MODULES.values()})
        if (count := len([path for path in folder.glob("*.py") if path.name != "__init__.py"])) > MOST_MODULES
    }
    assert crowded == {}


def test_every_package_lists_its_modules() -> None:
    """The docstring of a package names each of its modules and sub-packages."""
    missing = []
    for name, path in MODULES.items():
        if path.name != "__init__.py":
            continue
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        children = [other.rpartition(".")[2] for other in MODULES if other.rpartition(".")[0] == name]
        missing += [f"{name}: {child}" for child in children if child not in docstring and name != "precede"]
    assert missing == []


def graph() -> dict[str, list[str]]:
    """The modules of Precede that each module imports, for type checkers only or not."""
    edges: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        targets = {target for _, target in imports_of(path) if target in MODULES and target != name}
        edges[name] = sorted(target for target in targets if MODULES[target].name != "__init__.py")
    return edges


def cycles(edges: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in edges[name]:
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            place = stack.index(name)
            component = stack[place:]
            del stack[place:]
            if len(component) > 1:
                components.append(sorted(component))

    for name in edges:
        if name not in index:
            visit(name)
    return components


def test_no_cycle_of_imports_is_larger_than_a_pair() -> None:
    assert [component for component in cycles(graph()) if len(component) > LARGEST_CYCLE] == []


def test_the_cycle_check_finds_a_cycle() -> None:
    assert cycles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [["a", "b", "c"]]
