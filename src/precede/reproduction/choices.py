"""Settings that a paper does not state, chosen by some of its cells and judged by the others.

`papers/<key>/choices.toml` names the cells before the runs:

    [[choice]]
    name = "bus-transfers"
    says = "the time of a transfer is drawn from one distribution for all lifetimes"
    experiment = "bus-model"
    cells = ["table3-120min-wait"]          # claims by which a candidate is chosen: the least mean deviation
    judged = ["table3-60min-wait"]          # claims by which the chosen one is judged
    [[choice.candidate]]
    name = "exponential(0.1)"
    where = { jitter = "exponential(0.1)" }  # added to what each claim selects; `against` likewise
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.tables import read_toml
from precede.reproduction.claims import Claim, Claims
from precede.reproduction.judging import Comparison
from precede.reproduction.results import Results, judge_stored


class Candidate(Struct, frozen=True, forbid_unknown_fields=True):
    """One setting: what is added to the points that a claim selects."""

    name: str
    where: Mapping[str, Any] = {}
    against: Mapping[str, Any] = {}


class Choice(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Candidates, the claims that choose one of them, and the claims that judge the chosen one."""

    name: str
    says: str
    experiment: str
    cells: tuple[str, ...]
    judged: tuple[str, ...]
    candidate: tuple[Candidate, ...]
    reading: str = ""


class Chosen(Struct, frozen=True, kw_only=True):
    """The outcome: the mean deviation of each candidate in tolerances, the best one, and its judged claims."""

    choice: Choice
    deviations: Mapping[str, float]
    best: str
    comparisons: tuple[Comparison, ...]


def read_choices(folder: Path) -> list[Choice]:
    """Read the choices of a paper; none without a file."""
    path = folder / "choices.toml"
    if not path.is_file():
        return []
    try:
        return msgspec.convert(read_toml(path)[0].get("choice", []), list[Choice])
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None


def choose_setting(choice: Choice, claims: Claims, results: Results) -> Chosen | None:
    """Choose the candidate that deviates least in the named cells, and judge it; None if none was measured."""
    deviations = {}
    for candidate in choice.candidate:
        cells = judge_stored(_with(choice, candidate, claims, choice.cells), results)
        measured = [_deviation(one) for one in cells if one.ours is not None]
        if len(measured) == len(choice.cells):
            deviations[candidate.name] = fmean(measured)
    if not deviations:
        return None
    best = min(deviations, key=deviations.__getitem__)
    candidate = next(one for one in choice.candidate if one.name == best)
    judged = judge_stored(_with(choice, candidate, claims, choice.judged), results)
    return Chosen(choice=choice, deviations=deviations, best=best, comparisons=tuple(judged))


def _with(choice: Choice, candidate: Candidate, claims: Claims, ids: Sequence[str]) -> Claims:
    """Return claims about the choice's experiment with the settings of a candidate."""
    chosen = []
    for name in ids:
        claim = next((c for c in claims.claim if c.id == name and c.reading == choice.reading), None)
        if claim is None:
            raise BadInput(f"choice {choice.name!r}: no claim {name!r}")
        against = None if claim.against is None else {**claim.against, **candidate.against}
        where = {**claim.where, **candidate.where}
        changes = {"experiment": choice.experiment, "where": where, "against": against, "pair_by": ()}
        chosen.append(msgspec.structs.replace(claim, **changes))
    return msgspec.structs.replace(claims, claim=tuple(chosen))


def _deviation(one: Comparison) -> float:
    """Return how far the mean is off the published value, in tolerances of the claim."""
    claim: Claim = one.claim
    low, high = claim.bounds
    middle = sum(one.ours or (math.nan,)) / len(one.ours or (1,))
    bound = high if middle > high else low
    over = max(low - middle, middle - high, 0.0)
    return over / (claim.reach(bound) or abs(bound) or 1.0)
