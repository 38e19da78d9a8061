"""The measured part of a paper's page: a picture and a sentence for each exhibit, causes, all claims.

`precede reproduce all --pages docs/papers` writes it between two marks of each page, from stored results alone.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from precede.cli.evidence.exhibits import figures_of, interval, ours, published
from precede.core.errors import BadInput
from precede.report.figures import Curve, Figure, Mark, Point, svg
from precede.report.tables import Cell, Table, markdown
from precede.reproduction.choices import choose_setting, read_choices
from precede.reproduction.claims import Claim, experiments_of
from precede.reproduction.exhibits import by_exhibit, count_automatic, count_statuses, read_findings
from precede.reproduction.judging import STATUSES, Comparison
from precede.reproduction.request import Reproduction
from precede.reproduction.results import Results, digest_of_all, read_results

BEGIN: Final = "<!-- results: begin -->"
END: Final = "<!-- results: end -->"
_SHOWN: Final = tuple(status for status in STATUSES if status != "paper scale only")


def write_page(result: Reproduction, evidence: Reproduction | None, results: Results, page: Path) -> None:
    """Replace the text between the two marks of a paper's page, and write its pictures beside it."""
    if not page.is_file():
        raise BadInput(f"{page}: no such page (it needs the marks {BEGIN} and {END})")
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput(f"{page}: no marks {BEGIN} and {END}")
    text = "\n".join(_lines(result, evidence, results, page))
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _lines(result: Reproduction, evidence: Reproduction | None, results: Results, page: Path) -> Iterator[str]:
    key, judged = result.request.key, [one for one in result.comparisons if one.status != "paper scale only"]
    cpu_s = sum(sum(point.cpu_s) for point in results.points)
    codes = sorted({point.code for point in results.points})
    runs = sum(len(point.replicates) for point in results.points)
    yield (
        f"Written by `precede reproduce all --pages docs/papers` from `papers/{key}/results.json`, without a "
        f"simulation: {runs:,} runs, {result.violations:,} violations, {cpu_s:,.0f} s of CPU, "
        f"code {', '.join(codes)}. "
        f"Digest of the judged fields of all claims: {digest_of_all(result.request.all_claims())}."
    )
    yield ""
    yield from _counts(result)
    yield from _pictures(result, page)
    yield from _causes(judged)
    yield from _open_claims(result)
    yield from _choices(result, results)
    yield from _fold(f"All {len(judged)} judged claims", _table_by(key, judged, "paper"))
    if evidence is not None and evidence.comparisons:
        rows = [one for one in evidence.comparisons if one.status != "paper scale only"]
        title = "What the causes rest on: statements of ours, judged like claims"
        yield from _fold(title, _table_by(f"{key}/reasons", rows, "expected"))


def _counts(result: Reproduction) -> Iterator[str]:
    """Yield a table with the number of claims of each status, by exhibit."""
    spent = {name: sum(sum(point) for point in points) for name, points in _cpu_by_experiment(result).items()}
    rows = []
    for exhibit, comparisons in by_exhibit(result.comparisons).items():
        counted = [one for one in comparisons if not one.claim.automatic]
        counts = count_statuses(counted)
        scales = "/".join(dict.fromkeys(one.scale for one in comparisons if one.status != "paper scale only"))
        cost = sum(spent.get(name, 0.0) for name in sorted(experiments_of([one.claim for one in comparisons])))
        named = (
            exhibit,
            len(counted),
            *(counts.get(s) for s in STATUSES),
        )
        rows.append([*named, scales, round(cost)])
    header = ("exhibit", "claims", *STATUSES, "scale", "CPU s")
    yield markdown(Table("Claims by exhibit", header, rows)).rstrip("\n")
    yield ""
    yield f"One of them: `precede reproduce {result.request.key}/EXHIBIT`. CPU seconds are those of its runs."
    held, automatic = count_automatic(result.comparisons)
    if automatic:
        yield ""
        yield f"Counted apart: {held} of {automatic} identities, which hold whatever the protocol does."
    yield ""


def _cpu_by_experiment(result: Reproduction) -> dict[str, list[tuple[float, ...]]]:
    stored = read_results(result.request.folder)
    spent: dict[str, list[tuple[float, ...]]] = {}
    for point in stored.points if stored is not None else ():
        spent.setdefault(point.experiment, []).append(point.cpu_s)
    return spent


def _pictures(result: Reproduction, page: Path) -> Iterator[str]:
    """Yield a heading, a sentence and a picture for each exhibit; write the pictures."""
    findings = read_findings(result.request.folder / "figures.toml")
    exhibits = by_exhibit(result.comparisons)
    drawn = [(_exhibit_of(spec.name, exhibits), spec, figure) for spec, figure in figures_of(result)]
    for exhibit, comparisons in exhibits.items():
        pictures = [(spec.name, figure) for of, spec, figure in drawn if of == exhibit]
        if not any(figure.marks and _has_intervals(figure) for _, figure in pictures):
            # no picture has published values beside ours with an interval
            name = f"{exhibit}-claims" if pictures else exhibit
            pictures += [(name, figure) for figure in _beside_published(exhibit, comparisons)]
        counts = count_statuses([one for one in comparisons if not one.claim.automatic])
        words = ", ".join(f"{count} {status}" for status, count in counts.items()) or "identities only"
        yield f"### {_title(exhibit)}"
        yield ""
        yield f"{findings.get(exhibit, '')} ({words})".strip()
        yield ""
        yield from _drawn(pictures, page)
    others = [(spec.name, figure) for of, spec, figure in drawn if of is None]
    if others:
        yield "### Not a figure of the paper"
        yield ""
        yield findings.get("others", "")
        yield ""
        yield from _drawn(others, page)


def _has_intervals(figure: Figure) -> bool:
    return any(point.low is not None for curve in figure.curves for point in curve.points)


def _exhibit_of(name: str, exhibits: Iterable[str]) -> str | None:
    """Return the longest exhibit with which the name of a figure begins, and not only with the same digits.

    >>> _exhibit_of("figure6b-late", ["figure6", "figure6b"]), _exhibit_of("figure10", ["figure1"])
    ('figure6b', None)
    """
    fitting = [one for one in exhibits if re.match(rf"{re.escape(one)}(?!\d)", name)]
    return max(fitting, key=len, default=None)


def _drawn(pictures: Sequence[tuple[str, Figure]], page: Path) -> Iterator[str]:
    """Write pictures next to the page, and yield the Markdown that shows them."""
    for name, figure in pictures:
        file = page.with_name(f"{page.stem}-{name}.svg")
        file.write_text(svg(figure), encoding="utf-8")
        yield f"![{figure.title}]({file.name})"
        yield ""


def _title(exhibit: str) -> str:
    """Return an exhibit as the paper writes it.

    >>> _title("figure4a"), _title("section5.1"), _title("sectionvi-b")
    ('Figure 4a', 'Section 5.1', 'Section VI-B')
    """
    titled = re.sub(r"^([a-z]+)(?=[0-9])", r"\1 ", exhibit).capitalize()
    return re.sub(r"^Section([ivx]+.*)", lambda roman: f"Section {roman[1].upper()}", titled)


def _beside_published(exhibit: str, comparisons: Sequence[Comparison]) -> Iterator[Figure]:
    """Yield a picture of claims about a value or a bound: ours over it, with interval and tolerance."""
    points: list[Point] = []
    marks: list[Mark] = []
    names: list[str] = []
    for one in comparisons:
        claim = one.claim
        value = _unit_of(claim)
        if one.ours is None or one.status == "paper scale only" or not value:
            continue
        x = len(points)
        middle = sum(one.ours) / 2 / value
        ends = sorted(end / value for end in one.interval) if one.interval is not None else (None, None)
        points.append(Point(x, middle, *ends))
        low, high = _tolerated(claim, value)
        marks.append(Mark(x, low=low, high=high, says=f"{claim.id}: {claim.says}"))
        names.append(str(x + 1))
    if points:
        label = "claim, in the order of the table"
        yield Figure(
            f"{_title(exhibit)}: ours over the published value", label, "ours / published",
            [Curve("ours", points, joined=False)], marks, names,
        )  # fmt: skip


def _unit_of(claim: Claim) -> float:
    """Return the published value, bound, or middle of the published range; 0 if there is none."""
    finite = [bound for bound in claim.bounds if math.isfinite(bound)]
    return fmean(finite) if finite else 0.0


def _tolerated(claim: Claim, unit: float) -> tuple[float | None, float | None]:
    """Return from where to where a value is reproduced, in units of the published one; None: no limit."""
    low, high = claim.bounds
    least = (low - claim.reach(low)) / unit if math.isfinite(low) else None
    most = (high + claim.reach(high)) / unit if math.isfinite(high) else None
    return (least, most) if unit > 0 else (most, least)


def _causes(judged: Sequence[Comparison]) -> Iterator[str]:
    missed = [one for one in judged if one.status == "not reproduced"]
    if not missed:
        return
    yield "### Not reproduced, and why"
    yield ""
    for why, shown_by in dict.fromkeys((one.reason, one.shown_by) for one in missed):
        named = dict.fromkeys(f"`{one.claim.id}`" for one in missed if one.reason == why)
        cause = f"{why} ({shown_by})" if why else "no cause was found yet"
        yield f"* {', '.join(named)}: {cause}."
    yield ""


def _open_claims(result: Reproduction) -> Iterator[str]:
    """Yield what would decide each open claim, if `figures.toml` has a sentence about the open ones."""
    sentence = read_findings(result.request.folder / "figures.toml").get("open")
    undecided = [one for one in result.comparisons if one.status == "open"]
    if sentence is None or not undecided:
        return
    yield "### Open, and what would decide it"
    yield ""
    yield sentence
    yield ""
    header = ("claim", "paper", "ours", "95 % interval", "by its mean", "needs so many times the runs")
    rows: list[list[Cell]] = []
    for one in undecided:
        inclined, factor = _needed(one)
        name = f"`{one.claim.id}`" + (f" ({one.reading})" if one.reading else "")
        rows.append([name, published(one.claim), ours(one), interval(one), inclined, factor])
    table = markdown(Table("What would decide open claims", header, rows))
    yield from _fold(f"{len(rows)} open claims", f"By `precede reproduce {result.request.key}`:\n\n{table}")


def _needed(one: Comparison) -> tuple[str, Cell]:
    """Return how an open claim would be decided by its mean alone, and how many times the runs that would take.

    An interval shrinks with the root of the runs; it has to lie on one side of the nearest limit.
    """
    if one.ours is None or one.interval is None or one.ours[0] != one.ours[1]:
        return "", None
    mean, half = one.ours[0], (one.interval[1] - one.interval[0]) / 2
    low, high = one.claim.bounds
    limits = [end for end in (low - one.claim.reach(low), high + one.claim.reach(high)) if math.isfinite(end)]
    distance = min((abs(mean - end) for end in limits), default=0.0)
    inside = low - one.claim.reach(low) <= mean <= high + one.claim.reach(high)
    factor = (half / distance) ** 2 if distance else math.inf
    return "reproduced" if inside else "not reproduced", math.ceil(factor) if factor < 100 else "over 100"


def _choices(result: Reproduction, results: Results) -> Iterator[str]:
    """Yield how an unstated setting was chosen: all candidates, and the judged cells of the best."""
    key = result.request.key
    for choice in read_choices(result.request.folder):
        chosen = choose_setting(choice, result.request.all_claims(), results)
        yield f"### Not stated, so chosen: {choice.says}"
        yield ""
        cells = ", ".join(f"`{name}`" for name in choice.cells)
        yield f"Named before the runs: {cells} choose, the others judge (`papers/{key}/choices.toml`)."
        yield ""
        command = f"`precede reproduce {key}/{choice.experiment} --scale paper --store`"
        if chosen is None:
            yield f"Not measured yet ({command})."
            yield ""
            continue
        yield f"By {command}:"
        yield ""
        rows: list[list[Cell]] = [
            [name, round(off, 2), "chosen" if name == chosen.best else ""]
            for name, off in chosen.deviations.items()
        ]
        header = ("candidate", "mean deviation of the choosing cells, in tolerances", "")
        yield markdown(Table(choice.name, header, rows)).rstrip("\n")
        yield ""
        yield markdown(_claims_table(chosen.comparisons, "paper")).rstrip("\n")
        yield ""


def _table_by(name: str, comparisons: Sequence[Comparison], expected: str) -> str:
    return f"By `precede reproduce {name}`:\n\n{markdown(_claims_table(comparisons, expected))}"


def _claims_table(comparisons: Sequence[Comparison], expected: str) -> Table:
    readings = any(one.reading for one in comparisons)
    header = (
        "claim",
        "place",
        "says",
        *(("reading",) if readings else ()),
        expected,
        "ours",
        "95 % interval",
        "runs",
        "status",
    )
    rows: list[list[Cell]] = [
        [
            f"`{one.claim.id}`",
            one.claim.place,
            one.claim.says,
            *([one.reading] if readings else []),
            published(one.claim),
            ours(one),
            interval(one),
            one.runs,
            one.status + (" (identity)" if one.claim.automatic else ""),
        ]
        for one in comparisons
    ]
    return Table("Published beside ours" if expected == "paper" else "Expected beside ours", header, rows)


def _fold(title: str, text: str) -> Iterator[str]:
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield text.rstrip("\n")
    yield ""
    yield "</details>"
    yield ""
