"""What a WAS station sends to its cell: transmission, retransmission, discard (was2021, section 4.1)."""

from precede.core.effects import RADIO, CancelSend, Effect, Send, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.protocols.was2021.buffer import StationBuffer
from precede.protocols.was2021.options import WasOptions
from precede.protocols.was2021.packets import AckPacket, PrivatePacket
from precede.protocols.was2021.record import Record


class Transmission:
    """Sends the messages of SBuffer to the cell and recovered messages to single hosts.

    It counts first transmissions and repetitions since `judged_at`, to notice a cell with too many collisions
    (section 4.5).
    """

    def __init__(self, records: dict[NodeId, Record], buffer: StationBuffer, options: WasOptions) -> None:
        self.records = records
        self.buffer = buffer
        self.options = options
        self.private_timer = False
        self.first_transmissions = 0
        self.repetitions = 0
        self.judged_at: Instant | None = None

    def answer(self, packet: Packet, host: NodeId, effects: list[Effect]) -> None:
        """Send a control packet to a host; it replaces a queued one of the same kind."""
        effects.append(Send(packet, host, RADIO, (packet.kind, host)))

    def send_new(self, message: Message, effects: list[Effect]) -> None:
        """Number a new message. If a host has a record here, keep the message and send it to the cell."""
        if not self.records:
            self.buffer.pass_by()
            return
        number = self.buffer.add(message)
        self.first_transmissions += 1
        self.buffer.send(number, (), effects)

    def acknowledge(self, record: Record, packet: AckPacket, now: Instant, effects: list[Effect]) -> None:
        """Process an acknowledgement: discard messages, repeat missing ones, send further recovered ones."""
        record.acknowledge(packet.next)
        for first, last in packet.ranges:
            record.held.update(range(max(first, record.next), last + 1))
        self.collect(effects)
        if packet.ranges:
            self._fill_holes(record, packet.ranges[-1][1], now, effects)
        if record.private:
            self.send_private(record, now, effects)

    def _fill_holes(self, record: Record, top: int, now: Instant, effects: list[Effect]) -> None:
        """Repeat at once the messages that the host lacks below `top`, unless queued or sent within `guard`."""
        for number in range(record.need(), top):
            if number in record.held or number not in self.buffer.sent_at:
                continue
            if now - self.buffer.sent_at[number] > self.options.guard:
                self._repeat(number, now, effects)

    def repeat_due(self, now: Instant, effects: list[Effect]) -> None:
        """Handle the timer: repeat messages whose retransmission time is over and that some host needs."""
        self.buffer.timer_at = None
        for number in self.buffer.take_due(now):
            if any(record.needs(number) for record in self.records.values()):
                self._repeat(number, now, effects)
        self.buffer.arm(effects)

    def _repeat(self, number: int, now: Instant, effects: list[Effect]) -> None:
        self.repetitions += 1
        self._arm_judgement(now, effects)
        self.buffer.send(number, self._marks(number), effects)

    def _marks(self, number: int) -> tuple[NodeId, ...]:
        """Return no marks. The paper marks frames with hosts that delivered them; connectACK does it here."""
        return ()

    def collect(self, effects: list[Effect]) -> None:
        """Discard the messages below the lowest number that a host with a record here needs (E7)."""
        low = self.buffer.last + 1
        for record in self.records.values():
            need = record.need()
            low = min(low, need)
        self.buffer.discard_below(low, effects)

    # Recovered messages -------------------------------------------------------------------------------------

    def send_private(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        """Send the recovered messages in the window that the host lacks and that were not sent just now."""
        if not record.owner or not record.private:
            return
        for place, (number, message) in enumerate(record.private.items()):
            if place >= self.options.private_window:
                break
            if number in record.held:
                continue
            if number in record.private_at:
                at = record.private_at[number]
                if at is None or now - at <= self.options.guard:
                    continue
            record.private_at[number] = None
            key = ("private", record.host, number)
            packet = PrivatePacket(record.host, record.ses, number, message)
            effects.append(Send(packet, record.host, RADIO, key))
        self.arm_private(now, effects)

    def private_sent(self, host: NodeId, number: int, now: Instant, effects: list[Effect]) -> None:
        """Record when a recovered message left the radio's queue; its retransmission time counts from then."""
        record = self.records.get(host)
        if record is not None and number in record.private_at:
            record.private_at[number] = now
            self.arm_private(now, effects)

    def repeat_private(self, now: Instant, effects: list[Effect]) -> None:
        self.private_timer = False
        for record in list(self.records.values()):
            self.send_private(record, now, effects)

    def arm_private(self, now: Instant, effects: list[Effect]) -> None:
        if not self.private_timer:
            self.private_timer = True
            effects.append(SetTimer("private", now + self.options.retransmit))

    def cancel_private(self, record: Record, effects: list[Effect]) -> None:
        for number, at in record.private_at.items():
            if at is None:
                effects.append(CancelSend(("private", record.host, number)))

    # Collisions (section 4.5) -------------------------------------------------------------------------------

    def _arm_judgement(self, now: Instant, effects: list[Effect]) -> None:
        """Start to count transmissions, if `collision_limit` is below 1 and no count is under way."""
        if self.judged_at is None and self.options.collision_limit < 1:
            self.judged_at = now
            self.first_transmissions = self.repetitions = 0
            effects.append(SetTimer("collisions", now + self.options.down_after // 4))

    def end_judgement(self) -> bool:
        """Stop counting. Return True if too large a share of the transmissions were repetitions.

        The paper judges by the collision rate; a station cannot observe that, so we take repetitions.
        """
        self.judged_at = None
        share = self.repetitions / max(1, self.repetitions + self.first_transmissions)
        return share > self.options.collision_limit

    def continue_judgement(self, now: Instant, effects: list[Effect]) -> None:
        if self.buffer.messages:
            self._arm_judgement(now, effects)
