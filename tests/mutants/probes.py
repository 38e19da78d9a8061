"""Which tests run a place: a probe before the statement of each mutant, put in while the module is loaded.

The lines of the text keep their numbers, and a module without mutants is loaded as it is. A probe costs one
call of a built-in function, so the tests take hardly longer than without.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final

from tests.mutants.making import Mutant

Place = tuple[int, int]
"""A line, and a column counted in bytes, as in a syntax tree."""

_HIT: Final = "__mutant_hit__"


def with_probes(text: str, path: str, mutants: Iterable[Mutant]) -> CodeType:
    """Return the code of a file in which each mutant's statement first notes the mutant's name.

    A mutant outside of functions is noted by every function of the file.
    """
    tree = ast.parse(text)
    outside = []
    for mutant in mutants:
        if not _insert(tree.body, place_of(text, mutant.begin), mutant.name, inside=False):
            outside.append(mutant.name)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions if outside else ():
        after = 1 if ast.get_docstring(function, clean=False) is not None else 0
        function.body[after:after] = [_probe(name, function.body[0]) for name in outside]
    return compile(tree, path, "exec", dont_inherit=True)


def place_of(text: str, begin: int) -> Place:
    """Return line and column of a character of a text."""
    start = text.rfind("\n", 0, begin) + 1
    return text.count("\n", 0, begin) + 1, len(text[start:begin].encode())


def _insert(body: list[ast.stmt], place: Place, name: str, *, inside: bool) -> bool:
    """Put a probe before the innermost statement at a place, if that is inside of a function."""
    for index, statement in enumerate(body):
        assert statement.end_lineno is not None
        assert statement.end_col_offset is not None
        end = (statement.end_lineno, statement.end_col_offset)
        if not (statement.lineno, statement.col_offset) <= place < end:
            continue
        deeper = inside or isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        if any(_insert(inner, place, name, inside=deeper) for inner in _bodies(statement)):
            return True
        if inside:
            body.insert(index, _probe(name, statement))
        return inside
    return False


def _bodies(statement: ast.stmt) -> Sequence[list[ast.stmt]]:
    """Return the lists of statements inside of a statement."""
    owners: list[ast.AST] = [statement]
    if isinstance(statement, ast.Try | ast.TryStar):
        owners += statement.handlers
    if isinstance(statement, ast.Match):
        owners += statement.cases
    bodies = [getattr(owner, field, None) for owner in owners for field in ("body", "orelse", "finalbody")]
    return [body for body in bodies if isinstance(body, list)]


def _probe(name: str, before: ast.stmt) -> ast.stmt:
    call = ast.Expr(ast.Call(ast.Name(_HIT, ast.Load()), [ast.Constant(name)], []))
    ast.copy_location(call, before)
    return ast.fix_missing_locations(call)


def install(root: Path, mutants: Sequence[Mutant]) -> set[str]:
    """Load modules of the project at `root` with probes from now on. Returns the set that fills with names."""
    files: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        files.setdefault(str(root / mutant.file), []).append(mutant)
    hits: set[str] = set()
    setattr(builtins, _HIT, hits.add)
    SourceFileLoader.get_code = _loader(files)  # type: ignore[method-assign]
    return hits


def _loader(files: Mapping[str, Sequence[Mutant]]):  # type: ignore[no-untyped-def]
    plain = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        path = loader.get_filename(name)
        if path not in files:
            return plain(loader, name)
        return with_probes(Path(path).read_text(), path, files[path])

    return get_code
