"""`Past.named`, which is counted as it changes, equals the number of tops in the barrier."""

from __future__ import annotations

from random import Random

import pytest

from precede.protocols.guidec2021.past import Past
from precede.protocols.layered.parsed_envelopes import MessageName


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_number_of_named_tops_is_kept(seed: int, prune: bool):
    random, past = Random(seed), Past(prune)
    numbers = dict.fromkeys(range(5), 0)
    for now in range(200):
        stream = random.randrange(5)
        numbers[stream] += 1
        name = MessageName((stream, numbers[stream], now + random.randrange(1, 60)))
        if random.random() < 0.2:
            past.broadcast(name)
        else:
            entries = [MessageName(entry) for entry in past.barrier(now) if random.random() < 0.5]
            past.deliver(name, entries, past.top_of(name))
        if random.random() < 0.1:
            past.forget(now)
        assert past.named == [top.in_barrier for top in past.tops.values()].count(True)
