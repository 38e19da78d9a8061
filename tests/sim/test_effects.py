"""The most frequent effects, which are plain classes, behave like the structs, compiled or not."""

from __future__ import annotations

import copy
import pickle

import pytest

from precede.core.effects import RADIO, WIRED, Arrive, Deliver, Discard, Effect, Send
from precede.core.identity import MessageId
from precede.core.messages import Message, Packet

MESSAGE = Message(MessageId(3, 1, 7), b"m")
OTHER = Message(MessageId(3, 1, 8), b"m")


@pytest.mark.parametrize(
    ("effect", "equal", "different"),
    [
        (Arrive((MESSAGE,)), Arrive((MESSAGE,)), Arrive((MESSAGE, OTHER))),
        (Deliver(MESSAGE), Deliver(Message(MessageId(3, 1, 7), b"m")), Deliver(OTHER)),
        (Send(Packet(), 4), Send(Packet(), 4, RADIO, None), Send(Packet(), 4, WIRED)),
        (Send(Packet(), 4, key="k"), Send(Packet(), 4, RADIO, "k"), Send(Packet(), 5, RADIO, "k")),
    ],
)
def test_effects_are_equal_by_fields_and_after_a_copy(effect: Effect, equal: Effect, different: Effect) -> None:
    assert effect == equal
    assert effect not in (different, Discard(MESSAGE, "late"), None)
    assert copy.copy(effect) == pickle.loads(pickle.dumps(effect)) == effect


def test_effects_can_be_printed_and_matched() -> None:
    assert repr(Send(Packet(), 4)) == "Send(packet=Packet(), to=4, over=0, key=None)"
    match Send(Packet(), 4, WIRED, "k"):
        case Send(_, to, over, key):
            assert (to, over, key) == (4, WIRED, "k")
    match Arrive((MESSAGE, OTHER)):
        case Arrive((first, _)):
            assert first is MESSAGE


def test_an_effect_holds_the_parts_of_its_message_id() -> None:
    arrive, deliver = Arrive((MESSAGE,)), Deliver(MESSAGE)
    arrive.look_up()
    assert (arrive.source, arrive.incarnation, arrive.number) == (3, 1, 7)
    assert (deliver.source, deliver.incarnation, deliver.number) == (3, 1, 7)
    assert Arrive((MESSAGE, OTHER)).only is None
