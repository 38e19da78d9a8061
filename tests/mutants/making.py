"""Finds the mutants of a source file: one small change of its text each, made at a node of its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "*"}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(Struct, frozen=True):
    """One change: `old` at `begin` of a file becomes `new`. `name` stays the same when other code moves."""

    name: str
    file: str
    line: int
    function: str
    kind: str
    begin: int
    old: str
    new: str

    @property
    def module(self) -> str:
        return self.file.removeprefix("src/").removesuffix(".py").replace("/", ".")

    def apply(self, text: str) -> str:
        """Return the file's text with the fault in place."""
        assert text.startswith(self.old, self.begin)
        return text[: self.begin] + self.new + text[self.begin + len(self.old) :]


class _Finder(ast.NodeVisitor):
    """Walks over a file and notes every change as (kind, begin, end, new text, function)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines()
        self.path: list[str] = []
        self.found: list[tuple[str, int, int, str, str]] = []

    def at(self, line: int, column: int) -> int:
        """Return the place in the text of a place in the tree, whose columns count bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def begin(self, node: ast.expr | ast.stmt) -> int:
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)

    def note(self, kind: str, begin: int, end: int, new: str) -> None:
        self.found.append((kind, begin, end, new, ".".join(self.path)))

    def between(self, kind: str, left: ast.expr, right: ast.expr, new: str) -> None:
        """Replace the operator between two expressions; brackets around them stay."""
        begin, end = self.end(left), self.begin(right)
        middle = self.text[begin:end]
        word = middle.strip(" \n()")
        if word and "#" not in middle:
            at = begin + middle.index(word)
            self.note(kind, at, at + len(word), new)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._body(node.name, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._body(node.name, node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._body(node.name, node.body)

    def _body(self, name: str, body: list[ast.stmt]) -> None:
        """Neither decorators nor annotations nor defaults nor the docstring are changed."""
        self.path.append(name)
        for statement in body:
            self.visit(statement)
        self.path.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.note("raise dropped", self.begin(node), self.end(node), "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate("if", node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate("while", node.test)
        self.generic_visit(node)

    def _negate(self, word: str, test: ast.expr) -> None:
        text = self.text[self.begin(test) : self.end(test)]
        self.note(f"{word} negated", self.begin(test), self.end(test), f"not ({text})")

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self.between("comparison", left, right, COMPARED[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = "or" if isinstance(node.op, ast.And) else "and"
        self.between("and/or", node.values[0], node.values[1], word)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.note("not dropped", self.begin(node), self.begin(node.operand), "")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(side, ast.Constant | ast.JoinedStr) and not _is_number(side)
            for side in (node.left, node.right)
        )
        if type(node.op) in ARITHMETIC and not texts:
            self.between("arithmetic", node.left, node.right, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.note("constant", self.begin(node), self.end(node), str(not node.value))
        elif isinstance(node.value, int):
            self.note("constant", self.begin(node), self.end(node), str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
            self.note("function", self.begin(node.func), self.end(node.func), SWAPPED[node.func.id])
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call | ast.Await):
            self.note("statement dropped", self.begin(node), self.end(node), "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.path and all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.note("statement dropped", self.begin(node), self.end(node), "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.note("statement dropped", self.begin(node), self.end(node), "pass")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self.note("statement dropped", self.begin(node), self.end(node), "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.note("jump dropped", self.begin(node), self.end(node), "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self.note("jump dropped", self.begin(node), self.end(node), "pass")


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def find_mutants(path: Path, root: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file, in the order of its text."""
    text = path.read_text()
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    file = path.relative_to(root).as_posix()
    seen: dict[tuple[str, ...], int] = {}
    for kind, begin, end, new, function in sorted(finder.found, key=lambda one: (one[1], one[0])):
        old = text[begin:end]
        key = (file, function, kind, old, new)
        seen[key] = seen.get(key, -1) + 1
        name = sha256("\0".join((*key, str(seen[key]))).encode()).hexdigest()[:12]
        line = text.count("\n", 0, begin) + 1
        yield Mutant(name, file, line, function, kind, begin, old, new)
