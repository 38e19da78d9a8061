"""Writes the hashes in a report of pip as lines of a requirements file: `NAME==VERSION --hash=sha256:...`.

Used by `make hashes`. The addresses in the report are left out: they are those of the index that pip uses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def lines(report: dict[str, Any]) -> list[str]:
    """A line for each archive in a report of `pip install --report`, sorted by name."""
    written = []
    for item in report["install"]:
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        written.append(f"{item['metadata']['name']}=={item['metadata']['version']} --hash=sha256:{digest}")
    return sorted(written, key=str.lower)


if __name__ == "__main__":
    print("\n".join(lines(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
