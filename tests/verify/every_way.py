"""The same log through every way into the witness; all must say the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from precede.verify.verdict import Verdict
from precede.verify.witness import verify


def verify_every_way(rows: list[dict[str, Any]], order: str, **options: Any) -> Verdict:
    """Plain Python; compiled and read carefully; compiled and read quickly, from rows in order."""
    plain = verify(rows, order, compiled=False, **options)
    careful = verify(rows, order, compiled=True, **options)
    assert careful == plain
    if all("step" in row and isinstance(row["step"], int) for row in rows):
        in_order = sorted(rows, key=lambda row: row["step"])
        quick = verify(pa.Table.from_pylist(in_order), order, compiled=True, **options)
        assert quick == plain
    return plain
