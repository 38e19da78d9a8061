"""A request to reproduce a paper, and the result of it, as plain values."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.reproduction.claims import Claim, Claims, experiments_of, read_claims, read_reasons
from precede.reproduction.judging import Comparison, Sample
from precede.reproduction.units import Paper

REASONS: Final = "reasons"
"""The name that requests the evidence in `reasons.toml` instead of an exhibit of the paper."""


class Request(Struct, frozen=True, kw_only=True):
    """A request to reproduce a paper, or one exhibit or experiment of it, at a scale.

    `folder` has the paper's claims and experiments, `trace` is the name of a recorded trace that they use. With
    `same_code`, units that other code of this version measured are measured again.
    """

    key: str
    folder: Path
    scale: str
    exhibit: str = ""
    same_code: bool = False
    trace: str = ""

    @property
    def name(self) -> str:
        """The name under which the lake keeps this request's part of every table."""
        return "-".join(part for part in (self.key, self.exhibit, self.trace, self.scale) if part)

    @property
    def is_of_reasons(self) -> bool:
        return self.exhibit == REASONS

    def claims(self) -> Claims:
        """Return the claims of the paper, or of the requested exhibit or experiment, or our evidence."""
        claims = self.all_claims()
        if self.is_of_reasons:
            return Claims(claims.paper, read_reasons(self.folder / "reasons.toml").evidence)
        if not self.exhibit:
            return claims
        chosen = [claim for claim in claims.claim if self.exhibit in (claim.exhibit, claim.experiment)]
        return msgspec.structs.replace(claims, claim=tuple(chosen))

    def all_claims(self) -> Claims:
        return read_claims(self.folder / "claims.toml")

    def experiments(self, claims: Claims, paper: Paper) -> set[str]:
        """Return the experiments that answer the claims, or the one that is named; else BadInput."""
        units = paper.units(self.folder, self.scale)
        experiments = list(dict.fromkeys(unit.experiment for unit in units))
        every_claim: Sequence[Claim] = self.all_claims().claim
        named = experiments_of(claims.claim)
        if "*" in named:
            named = (named | experiments_of(every_claim)) - {"*"}
        if self.exhibit and not claims.claim:
            if self.exhibit not in experiments:
                exhibits = sorted({claim.exhibit for claim in every_claim} | set(experiments))
                raise BadInput(f"{self.key} has no exhibit {self.exhibit!r} (it has {', '.join(exhibits)})")
            return {self.exhibit}
        return named


class Reproduction(Struct, frozen=True, kw_only=True):
    """The result of a request: its claims, judged, and the samples they were judged by.

    `units` counts the runs, `finished_before` those that an earlier command had finished, `unverified` those
    whose log was not verified, `by_other_code` those that another state of the code measured.
    """

    request: Request
    claims: Claims
    comparisons: tuple[Comparison, ...]
    samples: tuple[Sample, ...]
    units: int
    finished_before: int
    failed: tuple[str, ...]
    violations: int
    unverified: int
    by_other_code: int
    cpu_s: float
