"""Events of a group: typed, the state first, then every change, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

import precede
from precede.runtime.deliveries import MemberState
from precede.runtime.notices import Notices
from precede.runtime.presence.event_feed import MOST_EVENTS, MOST_KNOWN
from precede.runtime.presence.presence import Presence
from tests.patience import patient

KEY = b"k" * 32


def presence(*given: Notices) -> Presence:
    state = MemberState("ana")
    state.phase = "open"
    return Presence(state, lambda node: f"m{node}", lambda: 7, *(given or [Notices("picnic", "ana")]))


async def taken(events: AsyncGenerator[precede.GroupEvent, None], count: int) -> list[str]:
    """The next events as text; replayed ones in brackets."""
    texts = []
    async with asyncio.timeout(patient(10)):
        for _ in range(count):
            event = await anext(events)
            text = f"{event.kind} {event.member}"
            texts.append(f"({text})" if event.replayed else text)
    return texts


def test_a_member_is_joined_lost_heard_again_and_left() -> None:
    async def run() -> None:
        one = presence()
        events = one.events()
        one.link_up(1)
        assert await taken(events, 1) == ["(joined m1)"]
        one.link_down(1)
        one.link_up(1)
        one.left(1)
        one.left(1)  # said twice, told once
        one.link_down(1)
        one.link_up(1)
        assert await taken(events, 4) == ["lost m1", "heard_again m1", "left m1", "joined m1"]

    asyncio.run(run())


def test_a_member_with_two_links_is_lost_with_the_second() -> None:
    async def run() -> None:
        one = presence()
        one.link_up(1)
        one.link_up(1)
        one.link_down(1)
        events = one.events()
        assert await taken(events, 1) == ["(joined m1)"]
        one.link_down(1)
        assert await taken(events, 1) == ["lost m1"]

    asyncio.run(run())


def test_a_late_subscriber_gets_the_state_then_every_change() -> None:
    async def run() -> None:
        notices = Notices("picnic", "ana")
        one = presence(notices)
        one.link_up(1)
        one.link_up(2)
        one.link_down(1)
        notices.give("other_order", "ben has order 'fifo'", "ben")
        notices.give("nobody_heard", "nobody is heard")
        late = one.events()
        first = asyncio.create_task(anext(late))
        await asyncio.sleep(0)
        one.link_up(3)  # after the subscription, before anything else is taken
        assert (await first).member == "m2"
        rest = await taken(late, 4)
        assert rest == ["(lost m1)", "(mismatch ben)", "(warning )", "joined m3"]

    asyncio.run(run())


def test_a_slow_subscriber_gets_the_state_instead_of_too_many_events() -> None:
    async def run() -> None:
        one = presence()
        one.link_up(1)
        events = one.events()
        assert await taken(events, 1) == ["(joined m1)"]
        for _ in range(MOST_EVENTS):
            one.link_down(1)
            one.link_up(1)
        assert await taken(events, 1) == ["(heard_again m1)"]
        one.link_down(1)
        assert await taken(events, 1) == ["lost m1"]

    asyncio.run(run())


def test_the_state_forgets_members_that_are_gone_first() -> None:
    async def run() -> None:
        one = presence()
        one.link_up(0)
        for node in range(1, MOST_KNOWN + 2):
            one.link_up(node)
            one.link_down(node)
        state = await taken(one.events(), MOST_KNOWN)
        assert state[0] == "(joined m0)"
        assert "(lost m1)" not in state

    asyncio.run(run())


@pytest.mark.parametrize("key", [None, KEY])
def test_members_over_sockets_see_each_other_come_leave_and_return(key: bytes | None) -> None:
    async def run() -> None:
        ana = precede.join("picnic", "ana", key=key, beacon=0.05)
        async with ana:
            events = ana.events()

            def ben() -> precede.Group:
                return precede.join("picnic", "ben", key=key, beacon=0.05, peers=[ana.address])

            async with ben():
                assert await taken(events, 1) in (["joined ben"], ["(joined ben)"])
            assert await taken(events, 1) == ["lost ben"]
            async with ben() as again:
                assert await taken(events, 1) == ["heard_again ben"]
                while not again.neighbours():
                    await asyncio.sleep(0.01)
                again.leave()
                assert await taken(events, 1) == ["left ben"]
        with pytest.raises(StopAsyncIteration):
            await anext(events)

    asyncio.run(run())


def test_a_farewell_to_everybody_is_no_farewell() -> None:
    """Any member can forge the sender of a frame to everybody."""

    async def run() -> None:
        ana = precede.join("picnic", "ana", key=KEY, beacon=0.05)
        async with ana:
            ben = precede.join("picnic", "ben", key=KEY, beacon=0.05, peers=[ana.address])
            async with ben:
                await taken(ana.events(), 1)
                ana._on_packet(b"\xff", ben.id, 0, True)
                assert ana.status()["dropped"]["no_topic"] == 1
                assert ana._presence._latest(ben.id) != "left"

    asyncio.run(run())
