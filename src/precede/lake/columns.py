"""Columns of node names as numbers: the sorted names, and each row's index among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from precede.core.natural_order import natural
from precede.traces.intervals import Ints


def distinct_names(*columns: Any) -> list[str]:
    """Return the distinct names in some Arrow columns, in natural order; nulls are left out."""
    names = {name for column in columns for name in column.unique().to_pylist() if name is not None}
    return sorted(names, key=natural)


def indices(column: Any, names: Sequence[str]) -> Ints:
    """Return the index of every row's name in `names`; -1 for a null and for a name that is not in the list."""
    import pyarrow.compute as pc  # a tenth of a second that runs without a lake need not take

    places = pc.index_in(column.cast(pa.string()), value_set=pa.array(names, pa.string()))
    numbers: Ints = places.fill_null(-1).to_numpy().astype(np.int64)
    return numbers
