"""The same messages over the links that a log shows: what would a protocol have done, had it also spread them?
 Every row of an accepted or received transfer shows that two nodes were in reach. Rows of a pair that are no
further apart than one period of scanning are one contact. These contacts are a lower bound of the meetings:
scans that found somebody and sent nothing are not in the log. When a contact began and ended is not in the log
either: the seed draws up to one period before its first and after its last row. The seed also draws the order
in which a contact exchanges messages.

Instants of different nodes must be on one axis here, so each clock is corrected by its offset (`clocks`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from msgspec import Struct

from precede.audit.deployment import Deployment, Hop
from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.experiments.simulation import simulate
from precede.protocols import registry
from precede.traces.contacts import read_contacts

SCAN_US: Final = 130_240_000
"""The longest period of scanning in MobiClique: 120 s and 10.24 s."""

RADIO: Final = 'radio = "ble"'
"""85 kB/s, 2 s to set a contact up: docs/reference/scenario.md has the values."""

_SIZE: Final = 300
"""Bytes of a message that no row has the size of."""


class Meeting(NamedTuple):
    """An interval in which two nodes are in reach."""

    a: str
    b: str
    start_us: int
    end_us: int


class LinkOutcome(Struct, frozen=True):
    """What a protocol did over the links. Own messages of a node are not counted as deliveries."""

    contacts: int
    received: int
    delivered: int
    fifo: int
    causal: int
    wait_us_mean: float
    wait_us_max: int
    control_bytes: int
    packet_bytes: int


def meetings_seen(
    hops: Iterable[Hop], offset_us: Mapping[str, int], random: Random, scan_us: int = SCAN_US
) -> list[Meeting]:
    """Return the contacts that rows show, with beginnings and ends drawn from the generator."""
    instants: dict[tuple[str, str], list[int]] = defaultdict(list)
    for hop in hops:
        if hop.accepted and hop.sender and hop.receiver:
            a, b = sorted((hop.sender, hop.receiver), key=natural)
            instants[a, b].append(hop.at_us - offset_us.get(hop.writer, 0))
    meetings = []
    for pair in sorted(instants, key=lambda pair: (natural(pair[0]), natural(pair[1]))):
        for first, last in _runs(sorted(instants[pair]), scan_us):
            start, end = first - random.randrange(scan_us), last + random.randrange(scan_us)
            meetings.append(Meeting(*pair, start, end))
    return meetings


def read_meetings(path: Path) -> list[Meeting]:
    """Read meetings from a file with the columns a, b, start, end in seconds. Raise BadInput for a bad row."""
    contacts = read_contacts(path).contacts
    columns = (column.tolist() for column in (contacts.a, contacts.b, contacts.start_us, contacts.end_us))
    rows = zip(*columns, strict=True)
    return [Meeting(contacts.names[a], contacts.names[b], start, end) for a, b, start, end in rows]


def _runs(instants: Sequence[int], scan_us: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last instant of each run of instants without a larger gap."""
    first = last = instants[0]
    for instant in instants[1:]:
        if instant - last > scan_us:
            yield first, last
            first = instant
        last = instant
    yield first, last


def replay_links(
    log: Deployment,
    meetings: Sequence[Meeting],
    offset_us: Mapping[str, int],
    protocol: str,
    options: Mapping[str, Any],
    seed: int,
) -> LinkOutcome:
    """Simulate a protocol over contacts, with the messages of a deployment broadcast to everybody."""
    if not meetings:
        raise BadInput(
            f"{log.name}: no row names a peer and no meetings are known: there are no links to replay"
        )
    with TemporaryDirectory(prefix="precede-audit-") as name:
        folder = Path(name)
        _write_scenario(folder, log, meetings, offset_us)
        run = simulate(folder / "replay.toml", protocol, seed, options={**_exchange(protocol), **options})
        measures = run.measures()
        return LinkOutcome(
            contacts=len(meetings),
            received=measures["receptions"],
            delivered=measures["deliveries"] - measures["own_deliveries"],
            fifo=run.verify("fifo").violations,
            causal=run.verify("causal").violations,
            wait_us_mean=measures["wait_us_mean"] or 0.0,
            wait_us_max=measures["wait_us_max"] or 0,
            control_bytes=measures["control_bytes"],
            packet_bytes=measures["packet_bytes"],
        )


def _exchange(protocol: str) -> dict[str, Any]:
    """Return the option for a random order of exchange: which order the deployment used is not known."""
    known = registry.options_of_entry(registry.find(protocol), "epidemic")
    return {"order": "random"} if "order" in known else {}


def _write_scenario(
    folder: Path, log: Deployment, meetings: Sequence[Meeting], offset_us: Mapping[str, int]
) -> None:
    sizes: dict[str, int] = {}
    for hop in log.hops:
        if hop.message is not None:
            sizes[hop.message] = max(hop.size, sizes.get(hop.message, 0))
    births = {m.message: m.at_us - offset_us.get(m.source, 0) for m in log.created.values()}
    zero = min(*births.values(), *(meeting.start_us for meeting in meetings))
    contacts = [f"{m.a},{m.b},{_seconds(m.start_us - zero)},{_seconds(m.end_us - zero)}\n" for m in meetings]
    (folder / "contacts.csv").write_text("a,b,start,end\n" + "".join(contacts))
    messages = [
        f"{m.message},{m.source},{_seconds(births[m.message] - zero)},{sizes.get(m.message) or _SIZE}\n"
        for m in log.created.values()
    ]
    (folder / "messages.csv").write_text("id,src,time,size\n" + "".join(messages))
    (folder / "replay.toml").write_text(
        f'[world]\nkind = "contacts"\ncontacts = "contacts.csv"\n{RADIO}\n'
        '[workload]\nmessages = "messages.csv"\n[run]\nprotocol = "unordered"\ngauges = "none"\n'
    )


def _seconds(instant_us: int) -> str:
    return f"{instant_us // 1_000_000}.{instant_us % 1_000_000:06d}"
