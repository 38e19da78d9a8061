"""Figure 11: however many nodes pass through, a node's registries do not grow."""

from random import Random

from precede.core.instants import MINUTE, SECOND
from tests.protocols.guidec2021.contact_worlds import Birth, Setting, contact_world


def passing(visitors: int) -> Setting:
    """Node 0 stays; visitors come one after the other, meet it, and are met by the next two."""
    random = Random(7)
    presence, contacts, births = {}, [], []
    for visitor in range(1, visitors + 1):
        enter = visitor * 20 * SECOND
        presence[visitor] = (enter, enter + 2 * MINUTE)
        for peer in (0, visitor - 1, visitor - 2):
            if 0 <= peer < visitor:
                start = enter + random.randrange(30) * SECOND
                contacts.append((peer, visitor, start, start + 40 * SECOND))
        births.append(Birth(visitor, enter + 20 * SECOND))
        births.append(Birth(0, enter + 25 * SECOND))
    return Setting(visitors + 1, contacts, births, presence, end=(visitors + 10) * 20 * SECOND)


def peaks(visitors: int, protocol: str, **options: str) -> dict[str, int]:
    setting = passing(visitors)
    world, _ = contact_world(setting, protocol, **options)
    most: dict[str, int] = {}
    for at in range(0, setting.end, 20 * SECOND):
        world.run(at)
        for name, size in world.nodes[0].node.sizes().items():
            most[name] = max(most.get(name, 0), size)
    return most


def test_ten_times_more_visitors_do_not_grow_the_registries() -> None:
    few, many = (peaks(visitors, "delta_causal", lifetime="5min") for visitors in (60, 600))
    assert few["co_delivered"] > 10
    for name, size in few.items():
        assert many[name] <= 1.1 * size + 1, f"{name}: {size} with 60 visitors, {many[name]} with 600"


def test_without_lifetimes_they_do_grow() -> None:
    """Why the paper wants lifetimes where there is churn."""
    few, many = (peaks(visitors, "causal_barrier") for visitors in (30, 300))
    assert many["co_delivered"] > 5 * few["co_delivered"]
