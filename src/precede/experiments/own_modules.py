"""Modules of the user: `--protocol module:ENTRY` finds them in the working directory."""

import sys
from pathlib import Path


def allow_own_modules() -> None:
    """Let `import` find modules in the working directory, before installed ones."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
