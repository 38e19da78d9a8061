"""How far the clocks of nodes disagree, from hops that both ends wrote down.

A message that was sent once from a to b and received once by b from a gives one difference of their two clocks
(and the time of the transfer, which is seconds). From all differences each node gets one offset: the median of
what its neighbours' offsets say, repeated until it settles. What an offset does not explain is a jump of a
clock, or two rows that belong to different copies. The verdicts never use offsets: they compare instants of one
clock only. A clock that jumps does change them, so the nodes that explain most of the rest are named and can be
left out.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from msgspec import Struct

from precede.audit.deployment import Hop
from precede.core.natural_order import natural

JUMP_US: Final = 60_000_000
"""A difference that offsets leave unexplained by more than this is a jump."""

_ROUNDS: Final = 100


class Difference(NamedTuple):
    """The clock of `receiver` minus that of `sender`, from one hop, at an instant of the sender's clock."""

    sender: str
    receiver: str
    at_us: int
    difference_us: int


class Clocks(Struct, frozen=True):
    """The offsets of clocks, the differences they rest on, and the nodes whose clocks seem to have jumped.

    `unexplained` counts the differences that the offsets miss by more than `JUMP_US`.
    """

    offset_us: dict[str, int]
    differences: tuple[Difference, ...]
    error_us: tuple[int, ...]
    suspects: tuple[str, ...]

    @property
    def unexplained(self) -> int:
        """The number of differences that the offsets miss by more than `JUMP_US`."""
        return sum(abs(error) > JUMP_US for error in self.error_us)


def compare_clocks(hops: Sequence[Hop]) -> Clocks:
    """Estimate the offset of each clock that can be compared with another one."""
    differences = _differences(hops)
    offsets = _offsets(differences)
    errors = [d.difference_us - (offsets[d.receiver] - offsets[d.sender]) for d in differences]
    pairs = [(d.sender, d.receiver) for d, e in zip(differences, errors, strict=True) if abs(e) > JUMP_US]
    return Clocks(offsets, tuple(differences), tuple(errors), tuple(_suspects(pairs)))


def _differences(hops: Sequence[Hop]) -> list[Difference]:
    sent: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    received: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for hop in hops:
        if hop.message is not None and hop.accepted:
            (sent if hop.kind == "sent" else received)[hop.message, hop.sender, hop.receiver].append(hop.at_us)
    return [
        Difference(
            sender,
            receiver,
            sent[message, sender, receiver][0],
            instants[0] - sent[message, sender, receiver][0],
        )
        for (message, sender, receiver), instants in received.items()
        if len(instants) == 1 and len(sent.get((message, sender, receiver), ())) == 1
    ]


def _offsets(differences: Sequence[Difference]) -> dict[str, int]:
    """Return the offset of each node; the median offset is 0."""
    about: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for sender, receiver, _, difference in differences:
        about[receiver].append((sender, difference))
        about[sender].append((receiver, -difference))
    offsets = dict.fromkeys(sorted(about, key=natural), 0)
    for _ in range(_ROUNDS):
        before = dict(offsets)
        for node in offsets:
            offsets[node] = round(median(offsets[other] + difference for other, difference in about[node]))
        if offsets == before:
            break
    middle = round(median(offsets.values())) if offsets else 0
    return {node: offset - middle for node, offset in offsets.items()}


def _suspects(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return the fewest nodes, greedily, that explain what offsets do not.

    One clock that disagrees with two others is suspect; of a single pair nobody knows which of both it is.
    """
    left, suspects = list(pairs), []
    while left:
        counts = Counter(node for pair in left for node in pair)
        others = {node: {a if b == node else b for a, b in left if node in (a, b)} for node in counts}
        candidates = [node for node in counts if len(others[node]) > 1]
        if not candidates:
            break
        worst = max(sorted(candidates, key=natural), key=lambda node: (counts[node], len(others[node])))
        suspects.append(worst)
        left = [pair for pair in left if worst not in pair]
    return sorted(suspects, key=natural)
