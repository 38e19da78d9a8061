"""Section 5.1 of was2021: WAS compared with CK, at a fixed rate (Figures 7, 8) and at the highest (Figure 6).

A point and a seed are one run of one protocol; two protocols with one seed have the same walks and the same
broadcasts. Everything is measured from rows. One second of silence lets hosts join before the first message.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out, prepare
from precede.experiments.tables import read_toml
from precede.measures.events import measure_events
from precede.measures.messages import Window
from precede.reproduction.units import ENGINE, Finding, Unit, expand, finding_about, seeds_of, unit_of
from precede.reproduction.was2021 import buffers
from precede.sim.randomness import Generators
from precede.witness.verify import verify

JOIN: Final = SECOND
DRAIN: Final = 2 * SECOND
OCTAVE: Final = 4
"""How many steps of a staircase of rising rates double the rate."""

Protocol = Literal["was", "ck", "ck_host"]
_PROTOCOLS: Final[dict[Protocol, tuple[str, dict[str, Any]]]] = {
    "was": ("was", {}),
    "ck": ("ck", {"frames": "cell"}),
    "ck_host": ("ck", {"frames": "host"}),
}


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """One point of one experiment. `rate` is messages per second of all hosts together.

    With `stairs` the rate is that of the first step of a staircase: each step lasts `seconds` and is a quarter
    of an octave higher. A step succeeds when `share` of its deliveries happen within `within` seconds; two
    failed steps in a row end the run. `options` are the protocol's, where they are not the usual ones; `like`
    names the experiment of section 5.2 or 5.3 (`buffers`, `failures`) that this one varies. `drawn`: figures
    show the buffers of this run second by second.
    """

    experiment: str
    protocol: Protocol
    hosts: int = 400
    stations: int = 10
    rate: float = 20.0
    seconds: float = 5.0
    bitrate: float = 20e6
    stairs: int = 0
    share: float = 0.9
    within: float = 1.0
    options: Mapping[str, str] = {}
    like: str = ""
    retries: int = 0
    drawn: bool = False

    @property
    def load(self) -> str:
        """The experiment that defines the load: `like`, or else this one."""
        return self.like or self.experiment


def read_experiments(tables: Mapping[str, Any], scale: str = "paper") -> list[tuple[Point, int]]:
    """Return every point of the file, and with how many seeds it is run at this scale."""
    quick = scale == "quick"
    most = tables["quick" if quick else "measured"]["runs"]
    shorter = tables["quick"]["seconds"] if quick else 1

    def make(given: dict[str, Any]) -> Point:
        return msgspec.convert({**given, "seconds": given["seconds"] * shorter}, Point)

    return [
        (point, min(table.get("quick_runs" if quick else "runs", most), most))
        for name, table in tables["experiment"].items()
        for point in expand(name, table, quick, make)
    ]


def units(folder: Path, scale: str, more: bool = False) -> list[Unit]:
    tables, _ = read_toml(folder / "experiments.toml")
    return [
        unit_of("was2021", point, seed, _varied(point))
        for point, seeds in read_experiments(tables, scale)
        for seed in seeds_of(tables, seeds, more)
    ]


def _varied(point: Point) -> dict[str, Any]:
    return {"protocol": point.protocol, "hosts": point.hosts, "retries": point.retries, **point.options}


def runs(unit: Unit) -> list[Run]:
    point = msgspec.convert(unit.given, Point)
    if point.load in buffers.RATES:
        seconds = round(point.seconds)
        return [buffers.describe(point.load, unit.seed, seconds, point.hosts, options=point.options)]
    return [describe(point, unit.seed)]


def measure(unit: Unit) -> Finding:
    return measure_run(msgspec.convert(unit.given, Point), unit.seed)


def measure_run(point: Point, seed: int) -> Finding:
    if point.load in buffers.RATES:
        results = buffers.measure(point.load, seed, round(point.seconds), point.hosts, options=point.options)
        measures = {name: value for name, value in results.items() if type(value) is float}
        series = results["series"] if point.drawn else {}
        return Finding(measures=measures, violations=results["violations"], order="causal", series=series)
    return _climb(point, seed) if point.stairs else _at_one_rate(point, seed)


def rates(point: Point) -> list[float]:
    """Return the rate of each step; without a staircase there is one step."""
    return [point.rate * 2 ** (step / OCTAVE) for step in range(max(point.stairs, 1))]


def describe(point: Point, seed: int) -> Run:
    """Describe one run in section 5's world: one Poisson process, each message by a host drawn at random."""
    protocol, options = _PROTOCOLS[point.protocol]
    last = JOIN + max(point.stairs, 1) * round(point.seconds * SECOND)
    return Run(
        world={
            "kind": "cellular",
            "stations": point.stations,
            "hosts": point.hosts,
            "bitrate": point.bitrate,
            "retries": point.retries,
            "duration": f"{last + DRAIN}us",
        },
        workload={"script": list(_script(point, seed))},
        protocol=protocol,
        options={**options, **({"stations": point.stations} if protocol == "was" else {}), **point.options},
        seed=seed,
        end=f"{last + DRAIN}us",
        gauges="none" if point.stairs else "250ms",
        log="messages",
    )


def _script(point: Point, seed: int) -> Iterator[dict[str, Any]]:
    stream = Generators(seed).numpy("broadcasts")
    length = round(point.seconds * SECOND)
    for step, rate in enumerate(rates(point)):
        instants = np.sort(stream.integers(0, length, stream.poisson(rate * point.seconds)))
        sources = stream.integers(0, point.hosts, len(instants))
        for at, source in zip(instants.tolist(), sources.tolist(), strict=True):
            yield {"src": f"h{source}", "at": f"{JOIN + step * length + at}us"}


# A fixed rate: Figures 7 and 8, and the ratios of the text --------------------------------------------------


def _at_one_rate(point: Point, seed: int) -> Finding:
    sink = TableSink()
    carry_out(describe(point, seed), sink)
    log = sink.events()
    verdict = verify(log, "causal", engine=ENGINE)
    counts = measure_events(log.to_batches(), Window(JOIN))
    measures = {name: float(value) for name, value in _chosen(counts, point).items()}
    measures |= _buffers(sink.gauges(), point)
    return finding_about(measures, verdict)


def _chosen(counts: Mapping[str, Any], point: Point) -> dict[str, float]:
    """Return the counts that claims are about, most of them per second of load.

    A repetition is a data frame that was sent to one of its addressees before. WAS sends a message once in each
    cell, so all frames beyond one per cell and message are repetitions. CK sends one message in several frames,
    as hosts become ready for it; its own packets mark repetitions.
    """
    count = {
        name: counts.get(f"packets_{name}") or 0 for name in ("ack", "proxy_ack", "proxy_repeat", "private")
    }
    repeated = count["proxy_repeat"]
    if point.protocol == "was":
        repeated = counts["packets_data"] - counts["broadcasts"] * point.stations + count["private"]
    return {
        "broadcasts": counts["broadcasts"],
        "delivered_share": counts["deliveries"] / (counts["broadcasts"] * point.hosts),
        "age_ms_mean": counts["age_us_mean"] / 1000,
        "acknowledgements_per_s": (count["ack"] + count["proxy_ack"]) / point.seconds,
        "repetitions_per_s": repeated / point.seconds,
        "radio_messages_per_s": counts["packets_over_radio"] / point.seconds,
        "radio_kbytes_per_s": counts["packets_over_radio_bytes"] / 1000 / point.seconds,
        "wired_messages_per_s": counts["packets_over_wired"] / point.seconds,
        "wired_kbytes_per_s": counts["packets_over_wired_bytes"] / 1000 / point.seconds,
    }


def _buffers(gauges: pa.Table, point: Point) -> dict[str, float]:
    """Return how many messages stations buffer in the mean, and by how many percent less than the fullest."""
    last = JOIN + round(point.seconds * SECOND)
    samples = buffers.buffer_sizes(gauges).items()
    sizes = np.sort(np.array([sizes for at, sizes in samples if JOIN < at <= last]), axis=1)
    fullest, rest = sizes[:, -1].mean(), sizes[:, :-1].mean()
    saving = 100 * (1 - rest / fullest) if fullest else 0.0
    return {"sbuffer_mean": float(sizes.mean()), "sbuffer_saving_percent": float(saving)}


# As far as it goes: Figure 6 ----------------------------------------------------------------------------------


class _DeliverySink(TableSink):
    """Counts the deliveries of each message that come in time, and keeps the rows for the verifier."""

    def __init__(self, within: Duration) -> None:
        super().__init__()
        self.within = within
        self.born: dict[tuple[str, int], int] = {}
        self.in_time: dict[tuple[str, int], int] = {}

    def write_events(self, block: pa.RecordBatch) -> None:
        super().write_events(block)
        kind = block.column("kind").cast(pa.string())
        mask = pc.or_(pc.equal(kind, "broadcast"), pc.equal(kind, "delivered"))
        columns = ("kind", "message_source", "message_number", "at_us")
        rows = pa.table({name: block.column(name).cast(_AS[name]) for name in columns}).filter(mask)
        values = (rows[name].to_pylist() for name in columns)
        for row_kind, source, number, at in zip(*values, strict=True):
            if row_kind == "broadcast":
                self.born[source, number] = at
            elif at - self.born[source, number] <= self.within:
                self.in_time[source, number] = self.in_time.get((source, number), 0) + 1

    def share(self, begin: int, end: int, hosts: int) -> float:
        """Return the share of deliveries in time of messages broadcast between two instants; 1 without any."""
        born = [message for message, at in self.born.items() if begin <= at < end]
        made = sum(self.in_time.get(message, 0) for message in born)
        return made / (len(born) * hosts) if born else 1.0


_AS: Final = {
    "kind": pa.string(),
    "message_source": pa.string(),
    "message_number": pa.int64(),
    "at_us": pa.int64(),
}


def _climb(point: Point, seed: int) -> Finding:
    """Raise the rate until two steps in a row fail; the throughput is the rate of the last that succeeded."""
    within, length = round(point.within * SECOND), round(point.seconds * SECOND)
    sink = _DeliverySink(within)
    prepared = prepare(describe(point, seed), sink)
    throughput, shares = 0.0, [1.0]
    for step, rate in enumerate(rates(point)):
        begin = JOIN + step * length
        prepared.world.run(begin + length + within)
        prepared.recorder.flush()
        shares.append(sink.share(begin, begin + length, point.hosts))
        if shares[-1] >= point.share:
            throughput = rate
        elif shares[-2] < point.share:
            break
    if not throughput or throughput == rates(point)[-1]:
        raise BadInput(
            f"{point.experiment}: {point.protocol} with {point.hosts} hosts: the staircase has too few steps"
        )
    verdict = verify(sink.events(), "causal", engine=ENGINE)
    return finding_about({"throughput_per_s": throughput, "share_of_last_step": shares[-1]}, verdict)
