"""Figure 11: with lifetimes the registries of a node do not grow with the number of nodes that pass."""

from random import Random

from precede.core.instants import MINUTE, SECOND
from tests.protocols.guidec2021.contact_worlds import Birth, Setting, contact_world


def passing(visitors: int) -> Setting:
    """Node 0 stays. Visitors enter one by one; each meets node 0 and the two visitors before it."""
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
    """The largest sizes of node 0's registries during a run."""
    setting = passing(visitors)
    world, _ = contact_world(setting, protocol, **options)
    largest: dict[str, int] = {}
    for at in range(0, setting.end, 20 * SECOND):
        world.run(at)
        for name, size in world.nodes[0].node.sizes().items():
            largest[name] = max(largest.get(name, 0), size)
    return largest


def test_ten_times_more_visitors_do_not_grow_the_registries() -> None:
    few, many = (peaks(visitors, "delta_causal", lifetime="5min") for visitors in (60, 600))
    assert few["co_delivered"] > 10
    for name, size in few.items():
        assert many[name] <= 1.1 * size + 1, f"{name}: {size} with 60 visitors, {many[name]} with 600"


def test_without_lifetimes_the_registries_grow() -> None:
    """The paper's reason for lifetimes in networks with churn."""
    few, many = (peaks(visitors, "causal_barrier") for visitors in (30, 300))
    assert many["co_delivered"] > 5 * few["co_delivered"]
