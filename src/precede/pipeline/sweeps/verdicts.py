"""The verdict about the log of one run, as plain data for its done mark."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from precede.witness.many_logs import verify_one_of_many
from precede.witness.verdict import ORDERS, read_order

_KEPT: Final = (
    *("order", "verdict", "rows", "deliveries_checked", "violations"),
    *("reasons", "findings", "listed"),
)


def judge(events: Path | pa.Table, promised: str) -> dict[str, Any]:
    """Verify a run's log for its promised order, else causal, and return the verdict as plain data."""
    plain = verify_one_of_many(events, read_order(promised) if promised in ORDERS else "causal").plain()
    return {"promised": promised, **{name: plain[name] for name in _KEPT}}
