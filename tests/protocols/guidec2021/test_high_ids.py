"""Node ids have up to 48 bits, as over sockets: messages that wait for one source's numbers stay apart."""

from __future__ import annotations

from random import Random

import pytest

from precede.core.effects import Deliver, Effect
from precede.core.identity import MessageId
from precede.core.instants import SECOND
from precede.core.messages import Message
from precede.core.node import Context, Waiting
from precede.protocols.guidec2021.delta_causal import DeltaCausal
from precede.protocols.guidec2021.options import DeltaCausalOptions
from precede.protocols.guidec2021.past import Barrier
from precede.protocols.layered.envelope import Envelope


def message(source: int, number: int, barrier: Barrier) -> Envelope:
    return Envelope(Message(MessageId(source, 0, number), b""), barrier, 100 * SECOND, None, 0, 0, 0)


@pytest.mark.parametrize("source", [5, (1 << 32) + 5, (1 << 48) - 1])
def test_a_message_is_released_though_a_later_number_of_its_source_is_waited_for_too(source: int) -> None:
    """The first message of the source has expired, so that its second one settles both numbers."""
    order = DeltaCausal(Context(0, (0, 1, 2, source), DeltaCausalOptions(), Random(1)))
    effects: list[Effect] = []
    waits_for_3 = message(1, 1, ((source, 3, 90 * SECOND),))
    waits_for_2 = message(2, 1, ((source, 2, 90 * SECOND),))
    for envelope in (waits_for_3, waits_for_2, message(source, 2, ())):
        order.arrive([envelope], SECOND, effects)
    delivered = [effect.message.id for effect in effects if type(effect) is Deliver]
    assert delivered == [MessageId(source, 0, 2), MessageId(2, 0, 1)]
    assert [one.message for one in order.waiting()] == [MessageId(1, 0, 1)]


def test_a_message_reports_only_the_predecessors_that_are_not_here() -> None:
    order = DeltaCausal(Context(0, (0, 1, 2, 3), DeltaCausalOptions(), Random(1)))
    effects: list[Effect] = []
    order.arrive([message(3, 1, ())], SECOND, effects)
    order.arrive([message(1, 1, ((2, 4, 80 * SECOND), (3, 1, 90 * SECOND)))], 2 * SECOND, effects)
    (waiting,) = order.waiting()
    assert waiting == Waiting(MessageId(1, 0, 1), (MessageId(2, 0, 4),), 2 * SECOND, 80 * SECOND)
