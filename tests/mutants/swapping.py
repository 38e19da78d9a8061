"""Puts a mutant into modules that are loaded: the functions of its file get the code of the changed text."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType

from tests.mutants.making import Mutant
from tests.mutants.probes import place_of

Key = tuple[str, int]
"""Qualified name and first line of a function: a property and its setter share a name."""


def functions_by_file(prefix: str) -> dict[str, list[FunctionType]]:
    """Return the functions that are loaded from files whose path begins with `prefix`."""
    files: dict[str, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(prefix):
            files.setdefault(thing.__code__.co_filename, []).append(thing)
    return files


def swap(functions: Sequence[FunctionType], mutant: Mutant, text: str, path: str) -> bool:
    """Give loaded functions of a file their code with the fault. False if the fault is outside of them."""
    function = outermost(text, mutant)
    if function is None:
        return False
    codes = {
        _key(code): code for code in _codes([compile(mutant.apply(text), path, "exec", dont_inherit=True)])
    }
    swapped = False
    for one in functions:
        key = _key(one.__code__)
        code = codes.get(key)
        if code is None or code.co_freevars != one.__code__.co_freevars:
            if key == function:
                return False
            continue
        one.__code__ = code
        swapped |= key == function
    return swapped


def _key(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno


def _codes(codes: Iterable[object]) -> Iterator[CodeType]:
    for code in codes:
        if isinstance(code, CodeType):
            yield code
            yield from _codes(code.co_consts)


def outermost(text: str, mutant: Mutant) -> Key | None:
    """Return the function of a module or class that a mutant is in."""
    place = place_of(text, mutant.begin)
    body: Sequence[ast.stmt] = ast.parse(text).body
    names: list[str] = []
    while True:
        around = [node for node in body if (node.lineno, node.col_offset) <= place < _end(node)]
        if not around or not isinstance(around[0], ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        node = around[0]
        names.append(node.name)
        if not isinstance(node, ast.ClassDef):
            lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
            return ".".join(names), min(lines)
        body = node.body


def _end(node: ast.stmt) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset
