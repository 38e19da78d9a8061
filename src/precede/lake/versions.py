"""Rows of files that an earlier version wrote, in the types that the tables declare now.

Version 1 stored the names of events and gauges as dictionaries, so that Polars read them as categories and
refused to join them with the same names in other tables. From version 2 on a column has one type everywhere.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from precede.core.errors import BadInput
from precede.eventlog.schema import FILE_VERSION, VERSION_KEY

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def upgraded(rows: Rows, path: Path, dictionaries: Collection[str] = ()) -> Rows:
    """Return rows of any version with the types of this one; `dictionaries` stay dictionaries.

    Raises BadInput if a later version of Precede wrote the file.
    """
    version = int((rows.schema.metadata or {}).get(VERSION_KEY, b"1"))
    if version > FILE_VERSION:
        later = f"table version {version}; this one knows up to {FILE_VERSION}"
        raise BadInput(f"{path}: written by a later version of Precede ({later})")
    coded = [f.name for f in rows.schema if pa.types.is_dictionary(f.type) and f.name not in dictionaries]
    if not coded:
        return rows
    fields = [f.with_type(f.type.value_type) if f.name in coded else f for f in rows.schema]
    return rows.cast(pa.schema(fields, metadata=rows.schema.metadata))
