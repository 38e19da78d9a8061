"""Connects one member to its log, its metrics endpoint and OpenTelemetry."""

import asyncio
import logging
from collections.abc import Sequence, Sized
from contextlib import nullcontext
from typing import Final

import msgspec

from precede.core.effects import Medium
from precede.core.errors import StoreFailed
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration
from precede.core.messages import Message
from precede.runtime.driver import Driver
from precede.runtime.history.kept import Kept
from precede.runtime.links.neighbours import Links
from precede.runtime.names import MemberNames
from precede.runtime.observe.endpoint import Answer, Endpoint
from precede.runtime.observe.exposition import CONTENT_TYPE, to_text
from precede.runtime.observe.families import Family, with_labels
from precede.runtime.observe.json_lines import MemberLog
from precede.runtime.observe.readings import Readings
from precede.runtime.observe.telemetry import NOTE_S, Telemetry, telemetry_of
from precede.runtime.settings import MemberSettings

_FEW: Final = 8
"""Of each reason so many given-up messages have a log line; later ones are counted only."""


class Watch:
    """What an operator sees of one member. It listens to the driver's reports and passes each of them on."""

    def __init__(
        self,
        group: str,
        settings: MemberSettings,
        driver: Driver,
        links: Sequence[Links],
        names: MemberNames,
        deliveries: Sized,
        warnings: Sized,
    ) -> None:
        self._group = group
        self._name = names.name_of(driver.node_id)
        self._names = names
        self._driver = driver
        self.readings = Readings(self._name, settings, driver, links, names.name_of, deliveries, warnings)
        self._log = MemberLog(group, self._name)
        self._endpoint: Endpoint | None = None
        if settings.metrics is not None:
            self._endpoint = Endpoint(settings.metrics, {"/metrics": self._metrics, "/status": self._status})
        self._telemetry: Telemetry | None = None
        self._noting: asyncio.Task[None] | None = None
        self._listen(driver)

    def _listen(self, driver: Driver) -> None:
        """Hear of deliveries, given-up messages and a failed store before the application does."""
        deliver, discard, fail = driver.on_deliver, driver.on_discard, driver.on_failure

        def on_deliver(kept: Kept, above: MessageId | None) -> None:
            message = kept.message
            self.readings.delivered(message)
            if self._telemetry is not None:
                self._telemetry.delivered(message, self._names.name_of(message.id.source))
            deliver(kept, above)

        def on_discard(message: Message, reason: str) -> None:
            self._given_up(message, reason)
            discard(message, reason)

        def on_failure(error: StoreFailed) -> None:
            self.readings.failed = True
            self._log.line(logging.ERROR, "store_failed", f"the store failed: {error}", cause=str(error))
            fail(error)

        driver.on_deliver, driver.on_discard, driver.on_failure = on_deliver, on_discard, on_failure

    async def start(self, incarnation: int) -> None:
        """Open the endpoint. Raise BadInput if its address cannot be used."""
        if self._endpoint is not None:
            await self._endpoint.start()
        self._telemetry = telemetry_of(self._group, self._name, self.readings.families)
        if self._telemetry is not None:
            self._noting = asyncio.get_running_loop().create_task(self._note(self._telemetry))
        order = self.readings.order
        self._log.line(logging.INFO, "joined", f"joined, order {order}", order=order, incarnation=incarnation)

    async def stop(self, why: str) -> None:
        """Close the endpoint and say once that the member stopped, and why."""
        if self._noting is not None:
            self._noting.cancel()
            self._noting = None
        if self._telemetry is not None:
            self._telemetry.close()
            self._telemetry = None
        if self._endpoint is not None:
            await self._endpoint.stop()
        self._log.line(logging.INFO, why, f"{why}, {self.readings.deliveries} messages delivered")

    @property
    def address(self) -> tuple[str, int] | None:
        """The address of the endpoint, with its real port, once it is open."""
        return None if self._endpoint is None else self._endpoint.address

    def link(self, peer: NodeId, over: Medium, up: bool) -> None:
        """Log that a neighbour is heard, or no longer, and tell the driver."""
        name = self._names.name_of(peer)
        self.readings.links_lost += not up
        event, text = ("link_up", f"hears {name}") if up else ("link_down", f"no longer hears {name}")
        self._log.line(logging.INFO, event, text, peer=name)
        (self._driver.link_up if up else self._driver.link_down)(peer, over)

    def broadcast(self, payload: bytes, to: Sequence[NodeId] | None, lifetime: Duration | None) -> None:
        """Let the driver broadcast, in a span if there is OpenTelemetry, and count what is not refused."""
        with nullcontext() if self._telemetry is None else self._telemetry.broadcast():
            self._driver.broadcast(payload, to, lifetime)
        self.readings.broadcasts += 1

    def _given_up(self, message: Message, reason: str) -> None:
        self.readings.given_up[reason] += 1
        if self.readings.given_up[reason] <= _FEW:
            source = self._names.name_of(message.id.source)
            text = f"gave up message {message.id.number} of {source}: {reason}"
            self._log.line(logging.INFO, "given_up", text, peer=source, cause=reason)

    async def _note(self, telemetry: Telemetry) -> None:
        while True:
            await asyncio.sleep(NOTE_S)
            telemetry.note()

    def _families(self) -> list[Family]:
        return with_labels(self.readings.families(), (("group", self._group), ("member", self._name)))

    def _metrics(self) -> Answer:
        return Answer(CONTENT_TYPE, to_text(self._families()).encode())

    def _status(self) -> Answer:
        status = {"group": self._group, **self.readings.status()}
        return Answer("application/json", msgspec.json.encode(status))
