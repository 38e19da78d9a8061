"""The shared dispatch over effects: order, the atomic step, crashes; each driver handles every effect."""

from __future__ import annotations

from typing import get_args

import pytest

from precede.core.dispatch import EffectHandler
from precede.core.effects import Accept, Deliver, Discard, Effect, Effects, Persist
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.experiments.stories.player import Player
from precede.runtime.driver import Driver
from precede.sim.world import World

MESSAGE = Message(MessageId(3, 1, 7), b"m")
EFFECTS: Effects = [
    Accept(MESSAGE),
    Persist("a", 1),
    Deliver(MESSAGE),
    Deliver(MESSAGE),
    Discard(MESSAGE, "late"),
    Persist("b", 2),
]
METHODS = [
    "accept",
    "arrive",
    "send",
    "cancel_send",
    "deliver",
    "discard",
    "observe",
    "set_timer",
    "cancel_timer",
    "persist",
]


class Recording(EffectHandler):
    """Records the effects it carries out, and crashes after some atomic steps."""

    def __init__(self, steps: int = 100) -> None:
        self.steps = steps
        self.done: list[str] = []

    def begin_step(self, node: int) -> bool:
        self.steps -= 1
        return self.steps >= 0

    def accept(self, node: int, effect: Accept, now: int) -> None:
        self.done.append(f"accept {node} {now}")

    def deliver(self, node: int, effect: Deliver, now: int) -> None:
        self.done.append("deliver")

    def discard(self, node: int, effect: Discard, now: int) -> None:
        self.done.append(f"discard {effect.reason}")

    def persist(self, node: int, effect: Persist, now: int) -> None:
        self.done.append(f"persist {effect.key}")


ALL = ["accept 4 9", "persist a", "deliver", "deliver", "discard late", "persist b"]


@pytest.mark.parametrize(("steps", "count"), [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 6), (6, 6)])
def test_a_crash_falls_between_two_effects_and_never_between_persist_and_its_deliver(
    steps: int, count: int
) -> None:
    handler = Recording(steps)
    handler.carry_out(4, EFFECTS, 9)
    assert handler.done == ALL[:count]


def test_an_unknown_effect_is_an_error_that_names_the_node() -> None:
    with pytest.raises(TypeError, match="node 4 returned 'x', which is no effect"):
        Recording().carry_out(4, ["x"], 0)  # type: ignore[list-item]


def test_there_is_a_method_for_every_effect() -> None:
    assert len(METHODS) == len(get_args(Effect))
    assert all(hasattr(EffectHandler, name) for name in METHODS)


@pytest.mark.parametrize("driver", [World, Driver])
def test_the_simulator_and_the_runtime_handle_every_effect(driver: type[EffectHandler]) -> None:
    inherited = [name for name in METHODS if getattr(driver, name) is getattr(EffectHandler, name)]
    assert inherited == []


def test_the_scenario_player_ignores_only_receptions_and_cancelled_sends() -> None:
    inherited = [name for name in METHODS if getattr(Player, name) is getattr(EffectHandler, name)]
    assert inherited == ["arrive", "cancel_send"]
