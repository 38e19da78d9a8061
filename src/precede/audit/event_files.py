"""Reads the log of any deployment from CSV or Parquet files: one row per event, any split into files.

Columns: `node`, `kind` (created, received or sent), `message`, `at` (seconds of the node's own clock).
Optional: `peer` (the other end of a received or sent copy), `group` (of a created message), `to` (its
addressees, with spaces between; empty: everybody) and `accepted` (of a sent copy: 1 or 0).
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from precede.audit.deployment import Created, Deployment, Hop, deployment
from precede.core.errors import BadInput
from precede.files.inputs import open_regular

REQUIRED: Final = ("node", "kind", "message", "at")
OPTIONAL: Final = ("peer", "group", "to", "accepted")
EVERYTHING: Final = "all messages"
"""The group of messages that name none."""

_KINDS: Final = ("created", "received", "sent")
_LAST_S: Final = 1e12


def read_event_files(paths: Sequence[Path]) -> Deployment:
    """Read the files of one deployment. Raise BadInput with file and line for a row that cannot be read."""
    created: dict[str, Created] = {}
    hops: list[Hop] = []
    for path in paths:
        for place, row in _rows(path):
            kind, message, node = row["kind"], row["message"], row["node"]
            if kind not in _KINDS:
                raise BadInput(f"{place}: unknown kind {kind!r} (known: {', '.join(_KINDS)})")
            if not message or not node:
                raise BadInput(f"{place}: {'message' if node else 'node'} is empty")
            at = _instant(place, row["at"])
            if kind != "created":
                hops.append(_hop(place, row, at))
                continue
            if message in created:
                raise BadInput(
                    f"{place}: message {message!r} was created before, by {created[message].source!r}"
                )
            addressees = frozenset(row["to"].split()) or None
            created[message] = Created(message, node, at, row["group"] or EVERYTHING, addressees)
    if not created:
        raise BadInput(f"{paths[0]}: no row with kind created: it is not known who wrote which message when")
    return deployment(paths[0].stem, created.values(), hops)


def _hop(place: str, row: Mapping[str, str], at: int) -> Hop:
    peer, node = row["peer"], row["node"]
    if row["kind"] == "received":
        return Hop(row["message"], peer, node, at, "received")
    accepted = row["accepted"] or "1"
    if accepted not in ("0", "1"):
        raise BadInput(f"{place}: accepted is 1 or 0, not {accepted!r}")
    return Hop(row["message"], node, peer, at, "sent", accepted == "1")


def _instant(place: str, text: str) -> int:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not abs(seconds) < _LAST_S:
        raise BadInput(f"{place}: at is {text[:40]!r}, not a number of seconds")
    return round(seconds * 1_000_000)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    with open_regular(path) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            _check_columns(path, header)
            for fields in reader:
                place = f"{path}:{reader.line_num}"
                if not fields:
                    continue
                if len(fields) != len(header):
                    raise BadInput(f"{place}: expected {len(header)} fields, got {len(fields)}")
                yield place, dict.fromkeys(OPTIONAL, "") | dict(zip(header, fields, strict=True))
        except UnicodeDecodeError as error:
            raise BadInput(f"{path}: not UTF-8 text ({error.reason})") from None
        except csv.Error as error:
            raise BadInput(f"{path}:{reader.line_num}: {error}") from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    import pyarrow.parquet as pq

    with open_regular(path) as raw:
        file = pq.ParquetFile(raw)
        names = file.schema_arrow.names
        _check_columns(path, names)
        columns = [name for name in (*REQUIRED, *OPTIONAL) if name in names]
        number = 0
        for batch in file.iter_batches(columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield (
                    f"{path}, row {number}",
                    dict.fromkeys(OPTIONAL, "") | {k: _text(v) for k, v in row.items()},
                )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    lacking = [name for name in REQUIRED if name not in names]
    if lacking:
        raise BadInput(f"{path}: no column {lacking[0]!r} (needed: {', '.join(REQUIRED)})")
