"""The papers' experiments in one form: units of work, each a point and a seed, verified and measured.

A unit is plain data, so that any worker can carry it out; its id is a hash of its description. Each paper's
package turns its experiments into units; this module has what the five share.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.run import Run
from precede.witness.verdict import Verdict
from precede.witness.verify import EngineName

P = TypeVar("P")

ENGINE: Final[EngineName] = "plain" if find_spec("numba") is None else "numba"
"""The verifier's engine for every unit: plain Python takes 0.9 s for the log of one of thousands of runs."""

PAPERS: Final = ("guidec2021", "was2021", "drift2006", "vcube2018", "prs1997")


class Unit(Struct, frozen=True, kw_only=True):
    """One point of an experiment with one seed: one run, or two that are compared.

    `varied` has the axes that claims select by, `given` the data from which the paper's package makes the runs.
    Units of one `cluster` are not independent of each other.
    """

    paper: str
    experiment: str
    varied: Mapping[str, Any]
    seed: int
    replicate: str
    given: Mapping[str, Any]
    cluster: str = ""

    @property
    def id(self) -> str:
        """A short id, the same for the same unit on every machine."""
        text = msgspec.json.encode([self.paper, self.experiment, self.given, self.seed], order="sorted")
        return f"{self.paper}-{self.experiment}-s{self.seed}-{blake2b(text, digest_size=6).hexdigest()}"


class Finding(Struct, frozen=True, kw_only=True):
    """The result of a unit: its measures, and the number of violations of `order` in its log.

    `series` has what the run went through, for figures: columns of equal length, by name.
    """

    measures: dict[str, float]
    violations: int
    order: str
    series: Mapping[str, Mapping[str, Sequence[float]]] = {}


def finding_about(
    measures: dict[str, float],
    verdict: Verdict,
    series: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
) -> Finding:
    """Return the finding about a verified log; a verdict other than `holds` counts as one more violation."""
    violations = verdict.violations + (verdict.verdict != "holds")
    return Finding(measures=measures, violations=violations, order=verdict.order, series=series or {})


class Paper(Protocol):
    """The functions of a paper's module `points` that `precede reproduce` calls."""

    def units(self, folder: Path, scale: str, more: bool = False) -> list[Unit]:
        """Return every unit of work of a scale; with `more`, with the number of seeds for open claims."""

    def runs(self, unit: Unit) -> list[Run]:
        """Return the runs that a unit consists of."""

    def measure(self, unit: Unit) -> Finding:
        """Carry out a unit: simulate, verify, measure."""


def find_paper(key: str) -> Paper:
    """Return a paper's functions by its key. Raise `BadInput` for an unknown key."""
    if key not in PAPERS:
        raise BadInput(f"no paper {key!r} (known: {', '.join(PAPERS)})")
    return cast(Paper, import_module(f"precede.reproduction.{key}.points"))


def expand(
    name: str, table: Mapping[str, Any], quick: bool, make: Callable[[dict[str, Any]], P]
) -> Iterator[P]:
    """Make the points of an experiment: its settings, with each case and each combination of its grid."""
    grid = table.get("quick_grid" if quick else "grid", table.get("grid", {}))
    settings = table.get("set", {}) | (table.get("quick_set", {}) if quick else {})
    for case in table.get("cases", [{}]):
        for values in product(*grid.values()):
            try:
                yield make({"experiment": name, **settings, **case, **dict(zip(grid, values, strict=True))})
            except (TypeError, msgspec.ValidationError) as error:
                raise BadInput(f"experiment {name!r}: {error}") from error


def seeds_of(tables: Mapping[str, Any], runs: int, more: bool) -> range:
    """Return the seeds of a point: `runs` of them, or `more` times as many, as `experiments.toml` says."""
    return range(1, runs * (int(tables.get("more", 1)) if more else 1) + 1)


def plain(point: Struct, without: Sequence[str] = ("experiment",)) -> dict[str, Any]:
    """Return a point as plain data, without some fields; tuples become lists, as in a claims file."""
    described: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(point))
    return {key: value for key, value in described.items() if key not in without}


def unit_of(paper: str, point: Any, seed: int, varied: Mapping[str, Any] | None = None) -> Unit:
    """Make the unit of a point and a seed, from which its paper's package can restore the point.

    Claims select by `varied`, which is by default every field of the point but the experiment.
    """
    return Unit(
        paper=paper,
        experiment=point.experiment,
        varied=plain(point) if varied is None else varied,
        seed=seed,
        replicate=str(seed),
        given=plain(point, ()),
    )
