"""Reads the responses of an etcd watch: what `etcdctl watch -w json` prints, or what its HTTP gateway sends.

A file is what one watcher saw; in a folder each file is a watcher. An event is named by its key and the
revision that made it. The order of two events is that of the file; revisions are only compared with it.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from precede.files.lines import BadRow, name_of, shown
from precede.witness.foreign.events import Context, Event, by_line, json_object


def parse(text: str, context: Context) -> Iterable[Event]:
    """Read one response: any number of events, each a delivery at the watcher."""
    response = json_object(text)
    response = response.get("result", response)
    header = None if not isinstance(response, dict) else response.get("Header", response.get("header"))
    if not isinstance(header, dict):
        raise BadRow(f"not a watch response: {shown(text)}")
    events = response.get("Events", response.get("events")) or []
    if not isinstance(events, list):
        raise BadRow(f"events are not a list: {shown(str(events))}")
    for event in events:
        pair = event.get("kv") if isinstance(event, dict) else None
        if not isinstance(pair, dict):
            raise BadRow(f"an event without a key: {shown(str(event))}")
        revision = _revision(pair.get("mod_revision"))
        yield Event(context.node, "delivered", f"{_key(pair.get('key'))}@{revision}", {context.node: revision})
    if response.get("Canceled") is True or response.get("canceled") is True:
        yield Event(context.node, "canceled")


def _revision(value: Any) -> int:
    written = str(value) if type(value) in (int, str) else ""
    if not (written.isascii() and written.isdigit() and len(written) < 19):
        raise BadRow(f"not a revision: {shown(str(value))}")
    return int(written)


def _key(value: Any) -> str:
    """Return a key as text; one that is not text stays in base64."""
    if not isinstance(value, str):
        raise BadRow(f"not a key: {shown(str(value))}")
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        text = value
    return name_of(text if text.isprintable() else value)


read_etcd_watch = by_line(parse)
