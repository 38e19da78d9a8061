"""The fates of messages between foreign programs: lost, or how long they take, drawn by link."""

from collections.abc import Callable

from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import Duration
from precede.sim.randomness import Distribution, Generators


def draw_fates(seed: int, loss: float, delay: str) -> Callable[[NodeId, NodeId], Duration | None]:
    """Return a function that draws the fate of the next message of a link: how long it takes, None if lost.

    `loss` is a probability, `delay` a written distribution in seconds of the scenario. Each direction of a link
    has generators of its own: the n-th message has the n-th draw, whatever is sent elsewhere.
    """
    if not 0 <= loss < 1:
        raise BadInput(f"--loss {loss}: expected a probability from 0 to below 1")
    generators, distribution = Generators(seed), Distribution(delay)
    draws: dict[tuple[NodeId, NodeId], tuple[Callable[[], float], Callable[[], Duration]]] = {}

    def fate(sender: NodeId, receiver: NodeId) -> Duration | None:
        link = (sender, receiver)
        if link not in draws:
            chance = generators.python("loss between programs", *link).random
            draws[link] = (chance, distribution.drawing(generators, "delay between programs", *link))
        chance, takes = draws[link]
        is_lost, duration = chance() < loss, takes()
        return None if is_lost else duration

    return fate
