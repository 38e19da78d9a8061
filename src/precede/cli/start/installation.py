"""Checks of the installation: versions, extras, compiled modules, from pip's metadata, without imports."""

import json
import re
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import precede
from precede.core.errors import BadInput
from precede.core.settings import did_you_mean

State = Literal["ok", "note", "slow", "wrong"]

DEVELOPMENT: Final = ("all", "bench", "dev", "docs")
"""Extras that `doctor` checks only if they are named: a collection, and tools for work on Precede itself."""
PACKAGE: Final = Path(precede.__file__).parent
_NAME: Final = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?")
_LEAST: Final = re.compile(r">=\s*([\w.]+)")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")


class Check(NamedTuple):
    """One thing that was looked at.

    `wrong` is needed and does not work, `slow` works slowly, `note` is optional and not there. `mend` is a line
    for the shell.
    """

    subject: str
    state: State
    text: str
    mend: str | None = None


class Requirement(NamedTuple):
    """A package that Precede or one of its extras needs, with the oldest version that works."""

    name: str
    least: str | None


def source_tree(package: Path = PACKAGE) -> Path | None:
    """Return the checkout that the package runs from; None if it is installed."""
    root = package.parent.parent
    return root if (root / "compiled.txt").is_file() else None


def declared_extras() -> list[str]:
    """Return the names of all extras. Empty if Precede runs from a folder that was never installed."""
    try:
        return distribution("precede").metadata.get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []


def requirements(extra: str | None) -> list[Requirement]:
    """Return what an extra needs, including what the extras in it need; None stands for the base install."""
    try:
        lines = distribution("precede").requires or []
    except PackageNotFoundError:
        return []
    return _requirements(lines, extra)


def _requirements(lines: Sequence[str], extra: str | None) -> list[Requirement]:
    needed: dict[Requirement, None] = {}
    for line in lines:
        of_extra = _EXTRA.search(line)
        if (of_extra[1] if of_extra else None) != extra:
            continue
        name = _NAME.match(line)
        assert name is not None, line
        if name[1] == "precede":
            for inner in name[2].split(","):
                needed.update(dict.fromkeys(_requirements(lines, inner)))
        else:
            least = _LEAST.search(line)
            needed[Requirement(name[1], least[1] if least else None)] = None
    return list(needed)


def installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def is_older(installed: str, least: str) -> bool:
    """Return whether a version is older than another; the parts after a letter do not count.

    >>> is_older("0.9.1", "0.60"), is_older("2", "2.0"), is_older("24.0.0rc1", "17")
    (True, False, False)
    """
    parts = [[int(part) for part in re.findall(r"\d+", text.split("+")[0])] for text in (installed, least)]
    longest = max(map(len, parts))
    padded = [[*numbers, *[0] * (longest - len(numbers))] for numbers in parts]
    return padded[0] < padded[1]


def install_line(extra: str) -> str:
    """Return the line that installs an extra the way Precede was installed: pip, pipx or uv.

    pipx and uv make the environment anew, so their lines name the extras that are already there too, and the
    file that Precede was installed from, if it was one.
    """
    root = source_tree()
    if root is not None:
        return f"{installer()} --editable '{root}[{extra}]'"
    tools = {"pipx_metadata.json": "pipx install", "uv-receipt.toml": "uv tool install"}
    for receipt, tool in tools.items():
        if (Path(sys.prefix) / receipt).is_file():
            present = [name for name in declared_extras() if not _versions(requirements(name))[0]]
            extras = dict.fromkeys([*(name for name in present if name not in DEVELOPMENT), extra])
            return f"{tool} --force '{_installed_file() or 'precede'}[{','.join(extras)}]'"
    return f"{installer()} 'precede[{extra}]'"


def installer() -> str:
    """Return the words that install packages into this environment. One that uv made has no pip."""
    has_pip = find_spec("pip") is not None
    return f"{sys.executable} -m pip install" if has_pip else f"uv pip install --python {sys.executable}"


def _installed_file() -> str | None:
    """Return the path of the wheel or archive that Precede was installed from, if it is still there."""
    origin = distribution("precede").read_text("direct_url.json")
    url = urlsplit(json.loads(origin)["url"]) if origin else None
    path = unquote(url.path) if url is not None and url.scheme == "file" else None
    return path if path is not None and Path(path).exists() else None


def check_base() -> list[Check]:
    """Check Precede itself, Python, and the packages that every use of Precede needs."""
    place = f"{'source tree' if source_tree() else 'installed'} at {PACKAGE}"
    python = ".".join(map(str, sys.version_info[:3]))
    checks = [
        Check("precede", "ok", f"{precede.__version__}, {place}"),
        Check("python", "ok", f"{python} at {sys.executable}"),
    ]
    if not declared_extras():
        text = "no metadata of precede: it was not installed, and its packages are unknown"
        return [*checks, Check("base", "wrong", text, f"{installer()} precede")]
    broken, whole = _versions(requirements(None))
    names = " ".join(f"'{requirement}'" for requirement in broken)
    mend = f"{installer()} {names}" if broken else None
    return [*checks, Check("base", "wrong" if broken else "ok", ", ".join([*broken, *whole]), mend)]


def check_extras(chosen: Sequence[str]) -> list[Check]:
    """Check each extra. One that is chosen must be whole; of the others, a gap is only worth a note."""
    extras = declared_extras()
    for name in chosen:
        if extras and name not in extras:
            raise BadInput(f"--extra {name}: none of {', '.join(extras)}{did_you_mean(name, extras)}")
    shown = [name for name in extras if name not in DEVELOPMENT or name in chosen]
    return [_check_extra(name, name in chosen or "all" in chosen) for name in shown]


def _check_extra(extra: str, is_chosen: bool) -> Check:
    broken, whole = _versions(requirements(extra))
    if not broken:
        return Check(f"[{extra}]", "ok", ", ".join(whole))
    text = f"not installed: {', '.join(broken)}" + (f"; installed: {', '.join(whole)}" if whole else "")
    return Check(f"[{extra}]", "wrong" if is_chosen else "note", text, install_line(extra))


def _versions(needed: Sequence[Requirement]) -> tuple[list[str], list[str]]:
    """Sort requirements into the missing or too old ones and the fulfilled ones, each with its version."""
    broken, whole = [], []
    for name, least in needed:
        installed = installed_version(name)
        if installed is None or (least is not None and is_older(installed, least)):
            broken.append(f"{name}>={least}" if least else name)
        else:
            whole.append(f"{name} {installed}")
    return broken, whole


def installed_bytes(extra: str | None) -> int:
    """Return the size of the installed packages that an extra needs, and these need, without bytecode."""
    sizes: dict[str, int] = {}
    left = [requirement.name for requirement in (*requirements(None), *(requirements(extra) if extra else ()))]
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in sizes:
            continue
        sizes[name] = 0
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        paths = [Path(file.locate()) for file in package.files or () if file.suffix != ".pyc"]
        sizes[name] = sum(path.stat().st_size for path in paths if path.is_file())
        left += [
            match[1]
            for line in package.requires or ()
            if "extra ==" not in line and (match := _NAME.match(line))
        ]
    return sum(sizes.values())


def compiled_modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the modules that were compiled with mypyc, by name, with their files."""
    modules = {}
    for path in sorted(package.rglob("*")):
        suffix = next((suffix for suffix in EXTENSION_SUFFIXES if path.name.endswith(suffix)), None)
        if suffix is not None:
            parts = path.relative_to(package.parent).parts
            modules[".".join([*parts[:-1], path.name.removesuffix(suffix)])] = path
    return modules


def check_compiled(package: Path = PACKAGE) -> Check:
    """Check whether the busiest modules are machine code, and in a checkout whether that code is up to date."""
    modules = compiled_modules(package)
    root = source_tree(package)
    again = None if root is None else f"make -C {root} plain compile"
    if not modules:
        return Check("compiled", "slow", "no module is compiled: simulations take about twice as long", again)
    libraries = [
        path for suffix in EXTENSION_SUFFIXES for path in package.parent.glob(f"precede__mypyc{suffix}")
    ]
    if not libraries:
        return Check("compiled", "wrong", f"{len(modules)} modules, but not the library they share", again)
    if root is None:
        return Check("compiled", "ok", f"{len(modules)} modules")
    compiled_at = max(library.stat().st_mtime for library in libraries)
    listed = [root / name for name in (root / "compiled.txt").read_text(encoding="utf-8").split()]
    changed = [path.stem for path in listed if path.stat().st_mtime > compiled_at]
    if changed:
        text = f"the compiled code is older than the text of {', '.join(changed)}: the old code runs"
        return Check("compiled", "wrong", text, again)
    state: State = "ok" if len(modules) >= len(listed) else "slow"
    return Check(
        "compiled", state, f"{len(modules)} of {len(listed)} modules", None if state == "ok" else again
    )
