"""What protocols would have done with a deployment, over protocols and seeds, in three kinds of replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any, Final

from msgspec import Struct

from precede.audit.clocks import Clocks
from precede.audit.deployment import Deployment
from precede.audit.same_copies import Outcome, replay_copies
from precede.audit.same_links import Meeting, meetings_seen, replay_links
from precede.measures.statistics import confidence_interval
from precede.protocols import registry

PROTOCOLS: Final = (
    *("unordered", "fifo", "causal_barrier", "delta_causal", "hash_dag"),
    *("arrival", "timestamp", "lamport", "sds"),
)
LIFETIME: Final = "12h"
COPIES, GROUPS, LINKS = "same copies", "same copies, each group by itself", "same links"


class Mean(Struct, frozen=True):
    """The mean over seeds and its 95 % interval. Both ends are the mean if there is one seed or no variance."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Mean:
        """Return the mean of a measure over seeds."""
        mean = fmean(values)
        low, high = confidence_interval(values) or (mean, mean)
        return Mean(mean, low, high)


class Row(Struct, frozen=True):
    """What one protocol did in one kind of replay: means over the seeds, each of a measure in one replay.

    `received` counts first copies at nodes that did not create the message, `delivered` those handed over,
    `fifo` and `causal` their violations. `answers_above` and `revisions` are those of display order; None over
    links. Waits are from reception to delivery; `longest_wait_s` is no mean but the longest of
    all seeds. `control_bytes` is per first copy.
    """

    replay: str
    protocol: str
    options: Mapping[str, Any]
    seeds: int
    longest_wait_s: float
    received: Mean
    delivered: Mean
    fifo: Mean
    causal: Mean
    wait_s: Mean
    control_bytes: Mean
    answers_above: Mean | None = None
    revisions: Mean | None = None


def replay(
    log: Deployment,
    clocks: Clocks,
    *,
    protocols: Sequence[str] = PROTOCOLS,
    lifetime: str = LIFETIME,
    seeds: int,
    meetings: Sequence[Meeting] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Replay a deployment under each protocol: the same copies, the same by group, and the same links.

    `lifetime` is for protocols that promise delta order. `meetings` replace the links seen, if there are any.
    `progress` is called with the replays that are done and all of them.
    """
    rows = []
    linked = bool(meetings) or any(hop.sender and hop.receiver for hop in log.hops)
    kinds = (COPIES, GROUPS, LINKS) if linked else (COPIES, GROUPS)
    done, total = 0, len(kinds) * len(protocols) * seeds
    for kind in kinds:
        for protocol in protocols:
            options = {"lifetime": lifetime} if registry.find(protocol).order == "delta" else {}
            measured = []
            for seed in range(1, seeds + 1):
                if kind == LINKS:
                    measured.append(_over_links(log, clocks, meetings, protocol, options, seed))
                else:
                    measured.append(_with_copies(log, kind == GROUPS, protocol, options, seed))
                done += 1
                if progress is not None:
                    progress(done, total)
            *means, longest = zip(*measured, strict=True)
            rows.append(Row(kind, protocol, options, seeds, max(longest), *map(Mean.of, means)))
    return rows


def _with_copies(
    log: Deployment, by_group: bool, protocol: str, options: Mapping[str, Any], seed: int
) -> tuple[float, ...]:
    parts = [log.copies(group=group) for group in log.groups] if by_group else [log.copies()]
    instants = [copy.latest_us for copy in log.first_copies if copy.is_row]
    end = max([*instants, *(message.at_us for message in log.created.values())])
    outcomes: list[Outcome] = [
        replay_copies(part, protocol, options, seed, end) for part in parts if len(part.node)
    ]
    waits = [wait for outcome in outcomes for wait in outcome.waits_us]
    received = sum(outcome.copies for outcome in outcomes)
    return (
        received,
        sum(outcome.delivered for outcome in outcomes),
        sum(outcome.fifo for outcome in outcomes),
        sum(outcome.causal for outcome in outcomes),
        fmean(waits) / 1e6 if waits else 0.0,
        sum(outcome.control_bytes for outcome in outcomes) / received if received else 0.0,
        sum(outcome.answers_above for outcome in outcomes),
        sum(outcome.revisions for outcome in outcomes),
        max(waits, default=0) / 1e6,
    )


def _over_links(
    log: Deployment,
    clocks: Clocks,
    meetings: Sequence[Meeting],
    protocol: str,
    options: Mapping[str, Any],
    seed: int,
) -> tuple[float, ...]:
    offsets = clocks.offset_us
    contacts = meetings or meetings_seen(log.hops, offsets, Random(f"ends of contacts {seed}"))
    outcome = replay_links(log, contacts, offsets, protocol, options, seed)
    return (
        outcome.received,
        outcome.delivered,
        outcome.fifo,
        outcome.causal,
        outcome.wait_us_mean / 1e6,
        outcome.control_bytes / max(1, outcome.received),
        outcome.wait_us_max / 1e6,
    )
