"""Reads JSON lines with vector clocks: `{"node": "a", "kind": "broadcast", "message": "m", "clock": {"a": 1}}`.

Other names of the fields are found if they are usual (`host`, `event`, `vector_clock`, …) or given with
`--columns`. The clock is an object or text with one. An event without a message is written as `"event":
"broadcast m1"`.
"""

from collections.abc import Iterable

from precede.witness.foreign.events import Context, Event, by_line, event_of_fields, json_object


def parse(text: str, context: Context) -> Iterable[Event]:
    """Read one line."""
    return [event_of_fields(json_object(text), context.columns)]


read_vector_clock_lines = by_line(parse)
