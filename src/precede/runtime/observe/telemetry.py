"""OpenTelemetry, through its API package alone (extra `[otel]`): metrics, and a span for each message.

The API does nothing until the application installs an SDK. Without the API nothing here is used.
OpenTelemetry reads metrics from a thread of its own; so it gets what a member noted last on its event loop.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final
from weakref import WeakSet

from precede.core.messages import Message
from precede.runtime.observe.families import Family, with_labels

NOTE_S: Final = 1.0
"""Seconds between two notes of a member's metrics."""
_MEMBERS: Final[WeakSet["Telemetry"]] = WeakSet()
_INSTRUMENTS: Final[dict[str, object]] = {}
"""OpenTelemetry has one instrument for each name in a process; a member cannot remove it."""


class Telemetry:
    """Spans and metrics of one member. Raises ImportError if `opentelemetry-api` is not installed."""

    def __init__(self, group: str, member: str, families: Callable[[], Iterable[Family]]) -> None:
        from opentelemetry import metrics, trace

        self.noted: dict[str, Family] = {}
        self._labels = (("group", group), ("member", member))
        self._attributes = {"precede.group": group, "precede.member": member}
        self._families = families
        self._tracer = trace.get_tracer("precede")
        self._meter = metrics.get_meter("precede")
        self.note()
        _MEMBERS.add(self)

    def note(self) -> None:
        """Note the metrics of now, and make an instrument for each that is new."""
        self.noted = {family.name: family for family in with_labels(self._families(), self._labels)}
        for family in self.noted.values():
            if family.name not in _INSTRUMENTS:
                _INSTRUMENTS[family.name] = self._instrument(family)

    def _instrument(self, family: Family) -> object:
        from opentelemetry.metrics import CallbackOptions, Observation

        def observe(options: CallbackOptions) -> list[Observation]:
            return [
                Observation(value, dict(labels))
                for member in list(_MEMBERS)
                if family.name in member.noted
                for labels, value in member.noted[family.name].samples.items()
            ]

        counter = family.kind == "counter"
        make = self._meter.create_observable_counter if counter else self._meter.create_observable_gauge
        return make(family.name, callbacks=[observe], description=family.meaning)

    def broadcast(self) -> Any:
        """Return a context manager: the span of a broadcast."""
        return self._tracer.start_as_current_span("precede.broadcast", attributes=self._attributes)

    def delivered(self, message: Message, source: str) -> None:
        """Record a delivery as a span without duration."""
        about: dict[str, str | int] = {
            **self._attributes,
            "precede.source": source,
            "precede.number": message.id.number,
            "precede.bytes": len(message.payload),
        }
        self._tracer.start_span("precede.deliver", attributes=about).end()

    def close(self) -> None:
        _MEMBERS.discard(self)


def telemetry_of(group: str, member: str, families: Callable[[], Iterable[Family]]) -> Telemetry | None:
    """Return the telemetry of a member, or None if OpenTelemetry's API is not installed."""
    try:
        return Telemetry(group, member, families)
    except ImportError:
        return None
