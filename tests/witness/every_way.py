"""The same log through every way into the witness; all must say the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from precede.witness.verdict import Verdict
from precede.witness.verify import verify


def verify_every_way(rows: list[dict[str, Any]], order: str, **options: Any) -> Verdict:
    """Plain Python; compiled and read carefully; compiled and read quickly, from rows in order."""
    plain = verify(rows, order, engine="plain", **options)
    careful = verify(rows, order, engine="numba", **options)
    assert careful == plain
    if all("step" in row and isinstance(row["step"], int) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        in_order = sorted(rows, key=lambda row: row["step"])
        table = pa.table({name: [row.get(name) for row in in_order] for name in names})
        quick = verify(table, order, engine="numba", **options)
        assert quick == plain
    return plain
