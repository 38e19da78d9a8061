"""With links without delay and an unlimited cache, a run receives exactly what the flood oracle computes."""

from random import Random

import pytest

from precede.core.instants import HOUR, MINUTE, SECOND
from tests.protocols.guidec2021.contact_worlds import Birth, Setting, flood, play, receptions


def drawn(seed: int) -> Setting:
    """A random setting whose contacts, broadcasts, entries and departures often coincide."""
    random = Random(seed)
    nodes = random.randint(2, 12)
    tick = random.choice([1, SECOND, 10 * SECOND])

    def instant(most: int) -> int:
        return random.randrange(most) // tick * tick

    contacts = []
    for _ in range(random.randint(1, 80)):
        a, b = random.sample(range(nodes), 2)
        start = instant(HOUR)
        contacts.append((a, b, start, start + instant(10 * MINUTE) + tick))
    births = sorted(
        (Birth(random.randrange(nodes), instant(HOUR)) for _ in range(random.randint(1, 60))),
        key=lambda birth: birth.at,
    )
    presence = {}
    for node in range(nodes):
        if random.random() < 0.4:
            enter = instant(HOUR // 2)
            presence[node] = (enter, enter + instant(HOUR) + tick)
    return Setting(nodes, contacts, births, presence, end=2 * HOUR)


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [None, 5, 10, 20])
def test_receptions_equal_those_of_the_flood_oracle(minutes: int | None) -> None:
    for seed in range(25):
        setting = drawn(seed)
        lifetime = None if minutes is None else minutes * MINUTE
        expected = flood(setting, lifetime)
        for order in ("received", "random"):
            if lifetime is None:
                rows = play(setting, "causal_barrier", seed, order=order)
            else:
                rows = play(setting, "delta_causal", seed, order=order, lifetime=lifetime)
            assert receptions(rows) == expected, f"seed {seed}, order {order}"


def test_with_links_without_delay_every_message_is_delivered_on_reception() -> None:
    """Caches are causally closed then: no message waits, whatever the order inside a transfer."""
    for seed in range(25):
        rows = play(drawn(seed), "causal_barrier", seed, order="random")
        received = [(row.node, row.message, row.at) for row in rows if row.kind == "received"]
        foreign = [row for row in rows if row.kind == "delivered" and row.node != row.message[0]]
        assert sorted(received) == sorted((row.node, row.message, row.at) for row in foreign)
