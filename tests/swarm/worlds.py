"""The worlds of the swarm that were run once over many seeds: `worlds.jsonl`, and docs/reference/worlds.md.

A row of the ledger counts the worlds of one protocol in a range of seeds, as the table `worlds` of a lake does.
The page is written from the ledger:

    python -m tests.swarm.worlds                     write the page
    python -m tests.swarm.worlds --lake lake         add the ranges that a lake has first
    python -m tests.swarm.worlds --rows more.jsonl   add rows of a file first
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from precede.experiments.swarm.plan import DRAWERS

LEDGER = Path(__file__).with_name("worlds.jsonl")
REGRESSIONS = Path(__file__).with_name("regressions.txt")
PAGE = Path(__file__).resolve().parents[2] / "docs/reference/worlds.md"

EXEMPTIONS = Path(__file__).with_name("exemptions.md")
HEAD = """# Random worlds

The swarm draws worlds from seeds: a network, faults, options and broadcasts. It runs each one and has the
verifier check the order. Then it asks whether everything that is due was delivered, whether buffers and stores
drained, whether registries stayed within limits (`experiments/swarm/limits.py` derives each), and whether the
nodes went quiet. The seeds of this table are from a range that nothing else uses: 20,000 worlds of each
protocol, with its variants.

`python -m tests.swarm.worlds` writes this page from `tests/swarm/worlds.jsonl`, which has a row for each
protocol and range of seeds. To repeat a row: `precede swarm --protocol NAME --worlds N --seed FIRST`. A name
with `+gossip` is an order over `gossip`; `drift+founding` is DRIFT whose members agree on a group,
`drift+meeting` DRIFT with groups that meet. The rows of the versions `0.2.0+dbf418a56950` and
`0.2.0+9ad9ec638103` were judged before the present limits: the one of barriers was looser. From
`0.2.0+e90c3826d9ab` on worlds have lifetimes of messages on every network, and VCube also 64 nodes.

"""


class Range(Struct, frozen=True, forbid_unknown_fields=True):
    """The worlds of one protocol whose seeds are from `first_seed` to `last_seed`; all of them were run."""

    protocol: str
    first_seed: int
    last_seed: int
    worlds: int
    violations: int
    duplicates: int
    undelivered: int
    leaks: int
    failing_seeds: tuple[int, ...]
    cpu_s: float | None
    version: str


def read(path: Path = LEDGER) -> list[Range]:
    return [msgspec.json.decode(line, type=Range) for line in path.read_bytes().splitlines() if line.strip()]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Sort ranges, and join those that follow each other, of one protocol and one version of the code."""
    joined: list[Range] = []
    for one in sorted(set(ranges), key=lambda each: (each.protocol, each.first_seed)):
        last = joined[-1] if joined else None
        if last and follows(last, one) and last.version == one.version:
            joined[-1] = _sum(last, one)
        else:
            joined.append(one)
    return joined


def follows(one: Range, other: Range) -> bool:
    return one.protocol == other.protocol and one.last_seed + 1 == other.first_seed


def _sum(one: Range, other: Range) -> Range:
    return replace(
        one,
        last_seed=other.last_seed,
        worlds=one.worlds + other.worlds,
        violations=one.violations + other.violations,
        duplicates=one.duplicates + other.duplicates,
        undelivered=one.undelivered + other.undelivered,
        leaks=one.leaks + other.leaks,
        failing_seeds=(*one.failing_seeds, *other.failing_seeds),
        cpu_s=None if one.cpu_s is None or other.cpu_s is None else round(one.cpu_s + other.cpu_s, 1),
    )


def overlapping(ranges: Sequence[Range]) -> list[tuple[Range, Range]]:
    """Return the pairs of ranges that count a world twice."""
    in_order = sorted(ranges, key=lambda each: (each.protocol, each.first_seed))
    return [(a, b) for a, b in pairwise(in_order) if a.protocol == b.protocol and b.first_seed <= a.last_seed]


def page(ranges: Sequence[Range]) -> str:
    """Return the text of docs/reference/worlds.md."""
    counts: dict[str, int] = {}
    for one in ranges:
        ordering = one.protocol.partition("+")[0]
        counts[ordering] = counts.get(ordering, 0) + one.worlds
    least, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    lines = [
        f"{sum(counts.values()):,} worlds of {len(counts)} protocols; a protocol has, with its variants, from"
        f" {counts[least]:,} (`{least}`) to {counts[most]:,} (`{most}`)."
        if counts[least] < counts[most]
        else f"{sum(counts.values()):,} worlds, {counts[least]:,} of each of {len(counts)} protocols.",
        "",
        "| protocol | seeds | worlds | violations | duplicates | undelivered | leaks | CPU s | version |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --- |",
    ]
    for one in ranges:
        findings = (one.violations, one.duplicates, one.undelivered, one.leaks)
        seeds = f"{one.first_seed} to {one.last_seed}"
        cpu = "" if one.cpu_s is None else f"{one.cpu_s:,.0f}"
        cells = [f"`{one.protocol}`", seeds, f"{one.worlds:,}", *map(str, findings), cpu, f"`{one.version}`"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Worlds that failed", "", *_failed(ranges), "", EXEMPTIONS.read_text().rstrip()]
    return HEAD + "\n".join(lines) + "\n"


def _failed(ranges: Sequence[Range]) -> list[str]:
    """Return a table of the worlds in these ranges that failed when they were run first, and why."""
    failed = [
        (protocol, seed, reason)
        for (protocol, seed), reason in known_failures().items()
        if any(one.protocol == protocol and one.first_seed <= seed <= one.last_seed for one in ranges)
    ]
    if not failed:
        return ["No world of these failed."]
    return [
        "These failed when they were run first. Each was mended, in the protocol or in the check, and",
        "`tests/swarm/regressions.txt` lists it for the tests to run again. Where a range was run again, the",
        "table has the later counts. One world: `precede swarm --protocol NAME --worlds 1 --seed SEED`.",
        "",
        "| protocol | seed | cause |",
        "| --- | --- | --- |",
        *(f"| `{protocol}` | {seed} | {reason} |" for protocol, seed, reason in failed),
    ]


def known_failures() -> dict[tuple[str, int], str]:
    """Return why each world of regressions.txt once failed."""
    reasons = {}
    for line in REGRESSIONS.read_text().splitlines():
        if line and not line.startswith("#"):
            world, _, reason = line.partition("#")
            protocol, seed = world.split()
            reasons[protocol, int(seed)] = reason.strip()
    return reasons


def of_lake(location: str) -> list[Range]:
    """Return the ranges of 64 seeds that the table `worlds` of a lake has complete."""
    from precede.lake.layout import Lake

    lake = Lake(location)
    names = [name for name in DRAWERS if lake.has("worlds", name)]
    rows = [row for name in names for row in lake.read("worlds", name).to_pylist()]
    ranges = []
    for row in rows:
        given = {name: row[name] for name in Range.__struct_fields__ if name not in ("cpu_s", "failing_seeds")}
        seeds = tuple(int(seed) for seed in row["failing_seeds"])
        if row["worlds"] == row["last_seed"] - row["first_seed"] + 1:
            ranges.append(Range(**given, failing_seeds=seeds, cpu_s=None))
    return ranges


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--lake", help="add the complete ranges of this lake")
    parser.add_argument("--rows", type=Path, action="append", default=[], help="add the rows of this file")
    given = parser.parse_args()
    ranges = [*read(), *(row for path in given.rows for row in read(path))]
    ranges = merged([*ranges, *(of_lake(given.lake) if given.lake else ())])
    if twice := overlapping(ranges):
        raise SystemExit(f"worlds are counted twice: {twice[0]}")
    LEDGER.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in ranges))
    PAGE.write_text(page(ranges))


if __name__ == "__main__":
    main()
