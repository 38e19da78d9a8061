"""Log lines as JSON objects, and the logger of one member, whose lines have fields.

A line of the logger `precede` has the attributes `event` (a word for programs), `group`, `member` and, where
they apply, others of `FIELDS`. A line is written once for each noteworthy thing, never for a packet.
"""

import json
import logging
import time
from typing import Any, Final

LOGGER: Final = logging.getLogger("precede")
FIELDS: Final = ("event", "group", "member", "peer", "code", "cause", "order", "address", "incarnation")
"""The attributes of a log record that are fields of Precede."""


class JsonFormatter(logging.Formatter):
    """Writes each record as one JSON object on one line.

    >>> record = logging.LogRecord("precede", logging.INFO, "", 0, "%s joined", ("ana",), None)
    >>> record.event, record.created = "joined", 0.0
    >>> JsonFormatter().format(record)[37:]
    '"level": "info", "logger": "precede", "event": "joined", "text": "ana joined"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.created * 1000) % 1000:03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        line |= {field: record.__dict__[field] for field in FIELDS if field in record.__dict__}
        line["text"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class MemberLog:
    """The log of one member: each line has its group and name."""

    def __init__(self, group: str, member: str) -> None:
        self._prefix = f"{group}/{member}"
        self._fields = {"group": group, "member": member}

    def line(self, level: int, event: str, text: str, **fields: object) -> None:
        """Log one line with fields, if anybody listens."""
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, "%s: %s", self._prefix, text, extra={"event": event, **self._fields, **fields})
