"""What `unordered` remembers of a stream stays bounded, whatever numbers its source leaves out."""

from random import Random

from precede.core.effects import Deliver, Effect, Persist
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.unordered import MOST_BEYOND, Unordered, UnorderedOptions

SOURCE = 9


def arrive(ordering: Unordered, number: int) -> list[Effect]:
    effects: list[Effect] = []
    message = Message(MessageId(SOURCE, 0, number), b"")
    ordering.arrive([Envelope(message, None, None, None, 0, 0, 0)], 0, effects)
    return effects


def fresh() -> Unordered:
    return Unordered(Context(0, (), UnorderedOptions(durable=True), Random(0)))


def test_a_source_that_leaves_gaps_fills_no_memory() -> None:
    ordering = fresh()
    for number in range(2, 6 * MOST_BEYOND, 2):
        stored, delivered = arrive(ordering, number)
        assert isinstance(stored, Persist)
        assert isinstance(delivered, Deliver)
        assert len(stored.value) <= MOST_BEYOND + 1
        assert ordering.knows(MessageId(SOURCE, 0, number))
    assert ordering.sizes()["delivered_entries"] <= MOST_BEYOND + 1
    assert not ordering.knows(MessageId(SOURCE, 0, number - 1)), "gaps near the end stay open"


def test_a_message_that_comes_late_is_delivered_while_its_gap_is_open() -> None:
    ordering = fresh()
    for number in range(2, MOST_BEYOND):
        arrive(ordering, number)
    assert not ordering.knows(MessageId(SOURCE, 0, 1))
    arrive(ordering, 1)
    assert ordering.sizes()["delivered_entries"] == 1
