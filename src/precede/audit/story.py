"""One violation of a deployment, told by the phones' own clocks.

Of all copies that came certainly late, the story takes the one that came latest after a message that directly
depends on it: its source had the first message, and then wrote the second to the same group. Every node in it
is addressed and none has a clock that jumped, so nobody has to believe in relays or in corrected clocks.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from precede.audit.clocks import Clocks
from precede.audit.deployment import Deployment
from precede.audit.event_files import EVERYTHING
from precede.witness.verify import verify


class Story(Struct, frozen=True):
    """A late copy. Instants are by the clock of the node they happened at, in microseconds."""

    group: str
    first: str
    second: str
    author: str
    replier: str
    receiver: str
    first_created_us: int
    first_at_replier_us: int
    second_created_us: int
    second_at_receiver_us: int
    first_at_receiver_us: int
    proof: str

    @property
    def late_us(self) -> int:
        """How much later the first message came to the receiver than the second, by the receiver's clock."""
        return self.first_at_receiver_us - self.second_at_receiver_us

    def plain(self) -> dict[str, Any]:
        """Return the story as plain data."""
        fields: dict[str, Any] = to_builtins(self)
        return fields | {"late_us": self.late_us, "sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """Return the story as sentences."""
        had = _spoken(self.second_created_us - self.first_at_replier_us)
        group, same = ("", "") if self.group == EVERYTHING else (f" to {self.group}", " to the same group")
        return [
            f"Phone {self.author} wrote message {self.first}{group}.",
            f"Phone {self.replier} received it, and {had} later, by its own clock, wrote message"
            f" {self.second}{same}.",
            f"Phone {self.receiver} received {self.second} first. Message {self.first} came"
            f" {_spoken(self.late_us)} later, by its own clock.",
            "Whether the second message answers the first is not in the log; that its author had it is.",
        ]


def tell_story(log: Deployment, clocks: Clocks) -> Story | None:
    """Return the story of the latest copy; None if no copy came late in this way."""
    suspects = frozenset(clocks.suspects)
    copies = [c for c in log.first_copies if c.is_row and c.is_addressed and c.node not in suspects]
    instants = {(copy.node, copy.message): copy.latest_us for copy in copies}
    had: dict[str, list[str]] = {}
    for copy in copies:
        had.setdefault(copy.node, []).append(copy.message)
    latest: Story | None = None
    for (receiver, second), second_at in instants.items():
        message = log.created[second]
        for first in had.get(message.source, ()):
            first_at = instants.get((receiver, first), -1)
            known = instants[message.source, first]
            if log.created[first].group != message.group or log.created[first].source in suspects:
                continue
            if known < message.at_us and second_at < first_at:
                story = Story(
                    message.group,
                    first,
                    second,
                    log.created[first].source,
                    message.source,
                    receiver,
                    log.created[first].at_us,
                    known,
                    message.at_us,
                    second_at,
                    first_at,
                    "",
                )
                if latest is None or story.late_us > latest.late_us:
                    latest = story
    return latest and _proven(latest)


def _spoken(duration_us: int) -> str:
    """Return a duration in its two largest units.

    >>> _spoken(31_971_000_000), _spoken(59_000_000)
    ('8 h 52 min', '59 s')
    """
    seconds = duration_us // 1_000_000
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _proven(story: Story) -> Story:
    """Return the story with the witness's account of its five rows."""
    events = [
        (story.author, 0, "broadcast", story.first),
        (story.replier, 0, "delivered", story.first),
        (story.replier, 1, "broadcast", story.second),
        (story.receiver, 0, "delivered", story.second),
        (story.receiver, 1, "delivered", story.first),
    ]
    names = ("node", "step", "kind", "message")
    verdict = verify([dict(zip(names, event, strict=True)) for event in events], "causal")
    assert verdict.first is not None, story
    fields = {name: getattr(story, name) for name in story.__struct_fields__}
    return Story(**(fields | {"proof": verdict.first.story}))
