"""Breadth-first search over the states of a small world, for `founders` and `voters`."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

S = TypeVar("S", bound=Hashable)


def explore(
    first: S, following: Callable[[S], Iterable[S]], visit: Callable[[S, int], None], most: int | None = None
) -> int:
    """Visit every state that can be reached, each once, with its number. Returns how many there are.

    With `most` the search ends after so many.
    """
    seen, level = {first}, [first]
    while level:
        later = []
        for state in level:
            for after in following(state):
                if after not in seen:
                    seen.add(after)
                    visit(after, len(seen))
                    later.append(after)
            if most is not None and len(seen) >= most:
                return len(seen)
        level = later
    return len(seen)
