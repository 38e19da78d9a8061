"""Results as data frames of the library that the caller uses."""

from typing import Any, Literal, TypeAlias

import pyarrow as pa

from precede.core.errors import BadInput, Unavailable

Library: TypeAlias = Literal["pandas", "polars", "arrow"]


def as_frame(table: pa.Table, library: Library) -> Any:
    """Return an Arrow table as a frame of pandas or Polars, or as it is. Raises Unavailable without them."""
    if library == "arrow":
        return table
    try:
        if library == "pandas":
            return table.to_pandas()
        if library == "polars":
            import polars

            return polars.from_arrow(table)
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"this frame needs {library}, which is not installed: pip install {library}"
        ) from error
    raise BadInput(f"library: expected pandas, polars or arrow, got {library!r}")
