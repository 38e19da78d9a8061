"""A deployment: the rows of its log, and the first copies that follow from them.

A log is a list of events, each written by one node with its own clock: `created` (a message), `received` (a
copy, from a peer) and `sent` (a copy, to a peer; accepted or not). Readers of formats make these; the rest of
the package reads nothing else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from precede.audit.copies import UNBOUNDED, Copies, Flags, encode

View: TypeAlias = Literal["received", "addressed"]
VIEWS: Final[tuple[View, ...]] = ("received", "addressed")


class Created(NamedTuple):
    """A message: its source, the instant by its source's clock, its group and its addressees (None:
    everybody)."""

    message: str
    source: str
    at_us: int
    group: str
    addressees: frozenset[str] | None = None


class Hop(NamedTuple):
    """A row about a copy on its way from `sender` to `receiver`; "" is an end that the row does not name.

    `writer` is the one whose clock `at_us` is, `size` the bytes sent, if the row says so. `message` is None for
    rows that name no message: they show a link.
    """

    message: str | None
    sender: str
    receiver: str
    at_us: int
    kind: Literal["sent", "received"]
    accepted: bool = True
    size: int = 0

    @property
    def writer(self) -> str:
        """The node that wrote the row."""
        return self.sender if self.kind == "sent" else self.receiver


class FirstCopy(NamedTuple):
    """The first copy of a message at a node that is not its source.

    `is_row` is false if the log has no row of it, or a row that cannot be the first: the node sent it on
    before.
    """

    node: str
    message: str
    earliest_us: int
    latest_us: int
    is_row: bool
    is_addressed: bool


class Deployment(Struct):
    """What is known of a deployment.

    `notes` are facts that the reader counted, by name. `unfollowed` counts messages that no row can be matched
    to.
    """

    name: str
    created: dict[str, Created]
    hops: list[Hop]
    first_copies: list[FirstCopy]
    ghosts: int
    unfollowed: int = 0
    notes: Mapping[str, int] = {}

    @property
    def groups(self) -> list[str]:
        """The groups of messages, those with the most first copies first."""
        counts: dict[str, int] = {message.group: 0 for message in self.created.values()}
        for copy in self.first_copies:
            counts[self.created[copy.message].group] += 1
        return sorted(counts, key=lambda group: (-counts[group], group))

    def copies(
        self,
        *,
        group: str | None = None,
        view: View = "received",
        missing: bool = False,
        without: Iterable[str] = (),
    ) -> Copies:
        """Return first copies as columns.

        * `group`: only messages of this group; dependencies through other messages do not count then.
        * `view`: "addressed" ignores copies at nodes that only relay them.
        * `missing`: also copies without a row, as intervals.
        * `without`: nodes that are left out, with their messages.
        """
        left_out = frozenset(without)

        def is_kept(copy: FirstCopy) -> bool:
            message = self.created[copy.message]
            return (
                (missing or copy.is_row)
                and (view == "received" or copy.is_addressed)
                and (group is None or message.group == group)
                and copy.node not in left_out
                and message.source not in left_out
            )

        kept = [copy for copy in self.first_copies if is_kept(copy)]
        messages = [self.created[copy.message] for copy in kept]
        return encode(
            [copy.node for copy in kept],
            [copy.message for copy in kept],
            [message.source for message in messages],
            [message.at_us for message in messages],
            [copy.earliest_us for copy in kept],
            [copy.latest_us for copy in kept],
        )


def deployment(
    name: str,
    created: Iterable[Created],
    hops: Sequence[Hop],
    unfollowed: int = 0,
    notes: Mapping[str, int] | None = None,
) -> Deployment:
    """Return the deployment that rows describe, with the first copy of each message at each node."""
    messages = {message.message: message for message in created}
    named = [hop for hop in hops if hop.message is not None]
    ghosts = sum(hop.message not in messages for hop in named)
    copies = _first_copies(messages, [hop for hop in named if hop.message in messages])
    return Deployment(name, messages, list(hops), copies, ghosts, unfollowed, dict(notes or {}))


def _first_copies(messages: Mapping[str, Created], hops: Sequence[Hop]) -> list[FirstCopy]:
    received: dict[tuple[str, str], int] = {}
    passed_on: dict[tuple[str, str], int] = {}
    mentioned: dict[tuple[str, str], None] = {}
    for hop in hops:
        assert hop.message is not None
        writes, key = (received, (hop.receiver, hop.message)), (hop.sender, hop.message)
        if hop.kind == "sent":
            writes = (passed_on, key)
            if hop.accepted:
                mentioned[hop.receiver, hop.message] = None
        else:
            mentioned[key] = None
        table, place = writes
        table[place] = min(hop.at_us, table.get(place, UNBOUNDED))
        mentioned[place] = None
    copies = []
    for node, message in mentioned:
        if node == "" or messages[message].source == node:
            continue
        first, sent = received.get((node, message), UNBOUNDED), passed_on.get((node, message), UNBOUNDED)
        is_row = first <= sent and first < UNBOUNDED
        earliest, latest = (first, first) if is_row else (-UNBOUNDED, sent)
        addressees = messages[message].addressees
        is_addressed = addressees is None or node in addressees
        copies.append(FirstCopy(node, message, earliest, latest, is_row, is_addressed))
    return copies


def flags_of(copies: Copies, condition: Callable[[str, str], bool]) -> Flags:
    """Return, for each copy, whether a condition on the names of its node and message holds."""
    pairs = zip(copies.node.tolist(), copies.message.tolist(), strict=True)
    return np.array(
        [condition(copies.names[node], copies.labels[message]) for node, message in pairs], np.bool_
    )
