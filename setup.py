"""Builds the package; with PRECEDE_COMPILE set (`make compile`, `make wheels`) mypyc compiles modules of it.

`compiled.txt` lists them: the engine, the networks and the protocols with the heaviest traffic. They also run
as plain Python, with the same event logs (`tests/sim/test_compiled.py`).
"""

import os
import re
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
TO_COMPILE = ["mypy>=2.4", "msgspec>=0.19", "numpy>=2"]
"""What mypyc needs beside a C compiler: itself, and the packages whose types the compiled modules use."""
WITHOUT_CODE = {"egg_info", "dist_info", "sdist"}
"""Commands of setuptools that build no modules."""


class WithPapers(build_py):
    """Puts the papers' claims, experiments and readings into the package; a source tree has them beside it."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_tree(str(ROOT / "papers"), str(Path(self.build_lib) / "precede" / "papers"))


def compiled_modules() -> list:
    """Translate the modules to C. The same text gives the same C, wherever it lies."""
    try:
        from mypyc.build import mypycify
    except ModuleNotFoundError:
        raise SystemExit(f"PRECEDE_COMPILE needs these packages: {' '.join(TO_COMPILE)}") from None
    names = (ROOT / "compiled.txt").read_text().split()
    silent = "--follow-imports=silent"  # other modules import packages that a build does not need
    modules = mypycify([silent, *names], group_name="precede", opt_level="2", debug_level="0", multi_file=True)
    if sys.platform.startswith("linux"):
        for module in modules:  # our functions are never replaced from outside, so calls can be direct
            module.extra_compile_args.append("-fno-semantic-interposition")
            module.extra_link_args.append("-Wl,-Bsymbolic-functions")
    return modules


def description() -> str:
    """The README as a package index shows it, where paths of the repository lead nowhere.

    If pyproject.toml names the repository (`[project.urls]`, `Source`), images and links lead to the tag of
    this version there. Otherwise an image becomes its caption, and a link its text.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = (ROOT / "src" / "precede" / "__init__.py").read_text(encoding="utf-8")
    tag = f"v{re.search(r'__version__ = .(.+?).$', package, re.MULTILINE)[1]}"
    source = project.get("urls", {}).get("Source")
    image, link = r"!\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)", r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)"
    if source is None:
        return re.sub(link, r"\1", re.sub(image, r"*\1*", text))
    text = re.sub(image, rf"![\1]({source}/raw/{tag}/\2)", text)
    return re.sub(link, rf"[\1]({source}/blob/{tag}/\2)", text)


compiling = bool(os.environ.get("PRECEDE_COMPILE"))
setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    ext_modules=compiled_modules() if compiling and not WITHOUT_CODE & set(sys.argv) else [],
    setup_requires=TO_COMPILE if compiling and "egg_info" in sys.argv else [],
    cmdclass={"build_py": WithPapers},
)
