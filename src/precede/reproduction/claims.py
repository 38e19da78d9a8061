"""The claims of a paper or a user: `[[claim]]` tables of a claims file as typed values.

A claim is one number or one sentence that measures can confirm or refute:

    paper = "somebody2021"
    readings = "start"                      # optional: judge each claim once for each value of this axis
    close = 2.0                             # optional: up to so many tolerances off is `close`
    [[claim]]
    id = "table2-wait"
    place = "section 5, Table 2"
    says = "with 64 nodes messages wait 3 ms"
    experiment = "main"                     # or a sweep's scenario; "*", the default, is any
    where = { nodes = 64 }                  # selects points of the experiment; the claim is about all of them
    measure = "wait_ms_mean"
    kind = "about"                          # see KINDS
    value = 3.0                             # `between` has `low` and `high` instead
    tolerance = 0.3                         # `reproduced` up to here (`relative`: as a share of the value) ...
    slack = 0.1                             # ... and `close` up to here beyond it

`against` selects a second point; the claim is then about the first compared with the second (see COMPARISONS).
`pair_by` names the axes on which the two points must have the same value. `strict` excludes the bound itself.
`automatic = true`: the claim holds whatever the protocol does (N(N-1) packets), and is counted apart.
`slack_relative` is the slack of one step of a curve, as a share of the value before it. `scale = "paper"`: the
quick scale cannot answer the claim. `readings = ["a", "b"]` inside a claim makes a claim for each reading and
replaces `"{reading}"` in `where` and `against` by it.

Tolerances are chosen before the runs, in a commit of their own.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.tables import read_toml

KINDS: Final[dict[str, str]] = {
    "about": "every point within the tolerance of the value",
    "between": "every point between low and high",
    "at_most": "no point above the value",
    "at_least": "no point below the value",
    "greatest": "the greatest of the points within the tolerance of the value",
    "greatest_at_least": "the greatest of the points not below the value",
    "rises": "from point to point along an axis it grows",
    "falls": "from point to point along an axis it shrinks",
    "range_rises": "greatest over least along `over` grows along `along`",
    "steeper_last": "of three places `at` along an axis, the last two lie further apart than the first two",
    "flat": "along an axis, greatest minus least over the mean is at most the tolerance",
    "linear": "along an axis, no point is off the line between the ends by more than this share of the rise",
    "sublinear": "along an axis, at every step it grows by a smaller factor than the axis",
    "withheld": "our copy of the paper does not show the value: only ours is reported",
}
COMPARISONS: Final[dict[str, str]] = {
    "change": "percent, run by run: 100 (first / second - 1)",
    "ratio": "run by run: first / second",
    "difference": "run by run: first - second",
    "largest_difference": "run by run: the largest distance over the measure and those in `also`",
    "apart": "of the means: |first / second - 1|",
}
_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "about": ("value",),
    "at_most": ("value",),
    "at_least": ("value",),
    "greatest": ("value",),
    "between": ("low", "high"),
    "rises": ("along",),
    "falls": ("along",),
    "range_rises": ("along", "over"),
    "steeper_last": ("along", "at"),
    "greatest_at_least": ("value",),
    "flat": ("along",),
    "linear": ("along",),
    "sublinear": ("along",),
}
_ROMAN: Final = {"I": "1", "II": "2", "III": "3", "IV": "4", "V": "5", "VI": "6", "VII": "7", "VIII": "8"}
_EXHIBIT: Final = re.compile(r"\b(Table|Figure)s? (\w+)")
_SECTION: Final = re.compile(r"\bsections? ([\w.-]+)")


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One number or sentence that measures can confirm; the module's docstring explains the fields."""

    id: str
    says: str
    kind: Literal[
        "about", "between", "at_most", "at_least", "greatest", "greatest_at_least", "rises", "falls",
        "range_rises", "steeper_last", "flat", "linear", "sublinear", "withheld",
    ]  # fmt: skip
    place: str = ""
    experiment: str = "*"
    measure: str = ""
    also: tuple[str, ...] = ()
    statistic: Literal["mean", "fives_apart"] = "mean"
    where: Mapping[str, Any] = {}
    against: Mapping[str, Any] | None = None
    pair_by: tuple[str, ...] = ()
    compare: Literal["change", "ratio", "difference", "largest_difference", "apart"] = "change"
    along: str = ""
    over: str = ""
    at: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    value: float | None = None
    tolerance: float = 0.0
    relative: float = 0.0
    slack: float = 0.0
    slack_relative: float = 0.0
    strict: bool = False
    reading: str = ""
    scale: Literal["quick", "paper"] = "quick"
    automatic: bool = False

    @property
    def exhibit(self) -> str:
        """The table, figure or section that has the claim: `table2`, `figure7`, `section5.1`; else `text`."""
        exhibit = _EXHIBIT.search(self.place)
        if exhibit:
            return exhibit[1].lower() + _ROMAN.get(exhibit[2], exhibit[2].lower())
        section = _SECTION.search(self.place)
        return f"section{section[1].lower()}" if section else "text"

    @property
    def bounds(self) -> tuple[float, float]:
        """The claimed lower and upper bound of the measure; infinite where the claim has none."""
        low, high = {
            "about": (self.value, self.value),
            "greatest": (self.value, self.value),
            "at_most": (None, self.value),
            "at_least": (self.value, None),
            "greatest_at_least": (self.value, None),
            "between": (self.low, self.high),
        }.get(self.kind, (None, None))
        return float("-inf") if low is None else low, float("inf") if high is None else high

    def reach(self, bound: float) -> float:
        """Return how far beyond a bound a value still counts as `reproduced`."""
        return self.tolerance or (self.relative * abs(bound) if math.isfinite(bound) else 0.0)

    def problem(self) -> str | None:
        """Return what is wrong with how the claim is written; None if nothing is."""
        for name in _NEEDED.get(self.kind, ()):
            if getattr(self, name) in (None, "", ()):
                return f"a claim of kind {self.kind!r} needs {name!r}"
        if not self.measure and self.statistic == "mean":
            return "it names no measure"
        return None


class Claims(Struct, frozen=True, forbid_unknown_fields=True):
    """A claims file: its claims, and the settings that hold for all of them."""

    paper: str = ""
    claim: tuple[Claim, ...] = ()
    readings: str = ""
    close: float = 1.0
    measure: str = ""


class Reason(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why claims are not reproduced. `supported_by` names tests (`tests/a.py::test_c`) and evidence by id.

    `undecided` names evidence about the same claims that stays open with all seeds that the paper's experiments
    state: it supports nothing, and is shown.
    """

    claims: tuple[str, ...]
    why: str
    supported_by: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    reading: str | None = None


class Reasons(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of reasons. Evidence has the form of a claim, but it is ours and about our experiments."""

    reason: tuple[Reason, ...] = ()
    evidence: tuple[Claim, ...] = ()


def read_claims(path: Path) -> Claims:
    """Read and check a claims file. Raises BadInput if it is wrong, in one line that names file and claim."""
    tables, _ = read_toml(path)
    written = tables.get("claim", [])
    if isinstance(written, list):
        tables = {**tables, "claim": [table for one in written for table in _each_reading(one)]}
    try:
        claims = msgspec.convert(tables, Claims)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None
    if not claims.claim:
        raise BadInput(f"{path}: no [[claim]] in this file")
    complete = [
        claim if claim.measure else msgspec.structs.replace(claim, measure=claims.measure)
        for claim in claims.claim
    ]
    _check(path, "claim", complete)
    names = Counter((claim.id, claim.reading) for claim in complete)
    for (name, _), count in names.items():
        if count > 1:
            raise BadInput(f"{path}: two claims have the id {name!r}")
    return msgspec.structs.replace(claims, claim=tuple(complete))


def _each_reading(table: Any) -> Iterator[Any]:
    """Yield a claim's table once for each of its `readings`; a table without readings is yielded unchanged."""
    readings = table.get("readings") if isinstance(table, dict) else None
    if not isinstance(readings, list):
        yield table
        return
    rest = {key: value for key, value in table.items() if key != "readings"}
    for reading in readings:
        selected = {
            key: {axis: reading if value == "{reading}" else value for axis, value in rest[key].items()}
            for key in ("where", "against")
            if isinstance(rest.get(key), dict)
        }
        yield {**rest, **selected, "reading": reading}


def _check(path: Path, noun: str, claims: Sequence[Claim]) -> None:
    for claim in claims:
        problem = claim.problem()
        if problem is not None:
            raise BadInput(f"{path}: {noun} {claim.id!r}: {problem}")


def read_reasons(path: Path) -> Reasons:
    """Read and check a file of reasons. Without the file there are no reasons."""
    if not path.is_file():
        return Reasons()
    tables, _ = read_toml(path)
    try:
        reasons = msgspec.convert(tables, Reasons)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None
    _check(path, "evidence", reasons.evidence)
    return reasons


def experiments_of(claims: Sequence[Claim]) -> set[str]:
    """Return the experiments that claims name, for themselves or for the point they are compared with."""
    named = {claim.experiment for claim in claims}
    second_points = [claim.against for claim in claims if claim.against is not None]
    return named | {str(where["experiment"]) for where in second_points if "experiment" in where}
