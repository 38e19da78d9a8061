"""Measured results that travel with a paper: `papers/<key>/results.json`.

The file has the measures of every unit that claims, evidence and figures need, by point; with the code version
and CPU time of each point, and with the digest of each claim's judged fields. So claims are judged, and pages
written, without a simulation; and a claim that was judged cannot change unnoticed.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.reproduction.claims import Claim, Claims, experiments_of, read_reasons
from precede.reproduction.judging import Comparison, Sample, judge
from precede.reproduction.request import Reproduction, Request

FORMAT: Final = 1
FILE: Final = "results.json"
STORED: Final = "stored"
"""The scale of a request for stored results; each claim is judged at the largest scale that has it."""
_DIGITS: Final = 7
_NOT_JUDGED: Final = ("id", "place", "says", "reading")


class PointResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One point at one scale: a replicate, its CPU seconds and its measures at the same place of each list.

    A measure that a replicate does not have is None. `code` is the version that measured these replicates. A
    point that two versions measured, each with other seeds, has one of these for each version. `series` has
    columns for figures; it is empty if no replicate has any.
    """

    scale: str
    experiment: str
    varied: Mapping[str, Any]
    code: str
    replicates: tuple[str, ...]
    clusters: tuple[str, ...] = ()
    cpu_s: tuple[float, ...]
    violations: int = 0
    unverified: int = 0
    measures: Mapping[str, tuple[float | None, ...]]
    series: tuple[Mapping[str, Mapping[str, tuple[float, ...]]], ...] = ()

    def samples(self) -> list[Sample]:
        return [
            Sample(
                self.experiment,
                self.varied,
                replicate,
                {name: value for name, values in self.measures.items() if (value := values[at]) is not None},
                self.clusters[at] if self.clusters else "",
                self.series[at] if self.series else {},
            )
            for at, replicate in enumerate(self.replicates)
        ]


class Results(Struct, frozen=True, kw_only=True):
    """The stored results of a paper; `judged` has the digest of each claim that was judged by them."""

    format: int = FORMAT
    paper: str
    judged: Mapping[str, str] = {}
    points: tuple[PointResult, ...] = ()


def read_results(folder: Path) -> Results | None:
    """Read the stored results of the paper in a folder; None without a file. Raises BadInput for a bad one."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path}: {error}") from None
    if results.format != FORMAT:
        raise BadInput(f"{path}: results of format {results.format}, expected {FORMAT}")
    return results


def write_results(folder: Path, results: Results) -> Path:
    """Write the results, a line for each point."""
    lines = [msgspec.json.encode(point).decode() for point in results.points]
    head = {"format": results.format, "paper": results.paper, "judged": dict(sorted(results.judged.items()))}
    text = msgspec.json.encode(head).decode()[:-1] + ',"points":[\n' + ",\n".join(lines) + "\n]}\n"
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    return path


def changed_claims(results: Results, claims: Claims) -> list[str]:
    """Return the names of judged claims whose judged fields are other ones now, or that are gone."""
    now = {name_of(claim): digest_of(claim, claims) for claim in claims.claim}
    return [name for name, digest in results.judged.items() if now.get(name) != digest]


def name_of(claim: Claim) -> str:
    return f"{claim.id} ({claim.reading})" if claim.reading else claim.id


def digest_of(claim: Claim, claims: Claims) -> str:
    """Return a digest of everything of a claim that decides its verdict."""
    fields = {name: value for name, value in msgspec.to_builtins(claim).items() if name not in _NOT_JUDGED}
    text = msgspec.json.encode([fields, claims.close, claims.readings], order="sorted")
    return blake2b(text, digest_size=6).hexdigest()


def digest_of_all(claims: Claims) -> str:
    """Return one digest of the judged fields of all claims of a paper."""
    digests = sorted((name_of(claim), digest_of(claim, claims)) for claim in claims.claim)
    return blake2b(msgspec.json.encode(digests), digest_size=6).hexdigest()


def stored_reproduction(request: Request, results: Results) -> Reproduction:
    """Return the request's claims judged by stored results, as if their units had just been measured."""
    claims = request.claims()
    comparisons = judge_stored(claims, results, read_reasons(request.folder / "reasons.toml").reason)
    experiments = experiments_of(claims.claim) if request.exhibit else {"*"}
    if not claims.claim:
        experiments = {request.exhibit}
    points = [
        one
        for one in results.points
        if ("*" in experiments or one.experiment in experiments)
        and one.scale == _scale_of(results, [one.experiment])
    ]
    if not points:
        exhibits = {claim.exhibit for claim in request.all_claims().claim}
        known = sorted(exhibits | {one.experiment for one in results.points})
        raise BadInput(
            f"no stored results of {request.key}/{request.exhibit} (there are: {', '.join(known)}); "
            f"an experiment is measured with precede reproduce {request.key}/NAME --scale quick --store"
        )
    return Reproduction(
        request=request,
        claims=claims,
        comparisons=tuple(comparisons),
        samples=tuple(sample for point in points for sample in point.samples()),
        units=sum(len(point.replicates) for point in points),
        finished_before=sum(len(point.replicates) for point in points),
        failed=(),
        violations=sum(point.violations for point in points),
        unverified=sum(point.unverified for point in points),
        by_other_code=0,
        cpu_s=sum(sum(point.cpu_s) for point in points),
    )


def judge_stored(claims: Claims, results: Results, reasons: Sequence[Any] = ()) -> list[Comparison]:
    """Judge each claim by the largest scale at which all of its experiments were measured."""
    samples = {
        scale: [sample for one in results.points if one.scale == scale for sample in one.samples()]
        for scale in ("paper", "quick")
    }
    comparisons = []
    for claim in claims.claim:
        scale = _scale_of(results, experiments_of([claim]))
        one_claim = msgspec.structs.replace(claims, claim=(claim,))
        comparisons += judge(one_claim, samples[scale], scale, reasons)
    return comparisons


def _scale_of(results: Results, experiments: Iterable[str]) -> str:
    """Return `paper` if all experiments are stored at the paper's scale (for any of them: if one is)."""
    at_paper_scale = {one.experiment for one in results.points if one.scale == "paper"}
    named = set(experiments)
    is_at_paper_scale = bool(at_paper_scale) if "*" in named else named <= at_paper_scale
    return "paper" if is_at_paper_scale else "quick"


def stored(value: float | None) -> float | None:
    """Return a measure with the digits that are stored."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")
