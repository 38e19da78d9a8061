"""Paired differences on the page of a sweep: is A better than B, where, and by how much."""

from typing import Final

from precede.lake.results import Row
from precede.measures.paired import COMPARED, FEWEST_SEEDS
from precede.report.figures import Curve, Figure, Point
from precede.report.tables import Cell, Table, html
from precede.report.units import unit_of
from precede.report.writing import Section, options_text, with_numbers

_TITLES: Final = {
    "delivery_ratio": "delivery ratio",
    "age_us_mean": "age at delivery",
    "wait_us_mean": "wait",
    "overhead_ratio": "overhead ratio",
    "packets": "packets",
    "control_bytes_mean": "control bytes in a packet",
    "energy_j": "energy",
}
_MOST_DRAWN: Final = 16
_MOST_LETTERS: Final = 60
"""Below the axis of a figure; longer names are replaced by numbers."""
_DRAWN: Final = ("delivery_ratio", "age_us_mean", "overhead_ratio")


def difference_sections(rows: list[Row]) -> list[Section]:
    """The section of a sweep's differences; none if nothing was compared."""
    if not rows:
        return []
    text = (
        "Runs with the same seed are compared: a minus b, with the 95 % interval of the mean difference."
        " p is corrected by Holm's method for all tests of a measure in this sweep, over all scenarios; a"
        f" difference is concluded below 0.05. With fewer than {FEWEST_SEEDS} shared seeds nothing is"
        " concluded. The effect is the mean difference in standard deviations of the differences."
    )
    figures = [with_numbers(figure) for measure in _DRAWN if (figure := difference_figure(rows, measure))]
    return [
        Section("Is A better than B?", text, figures=figures, tables=[html(_table(rows))], filter="differences")
    ]


def difference_figure(rows: list[Row], measure: str) -> Figure | None:
    """Draw the differences of a measure in percent of b, one curve for each scenario; None if there are none.

    A wide sweep has more pairs than a figure can show: then the pairs that differ most clearly are drawn.
    """
    chosen = [row for row in rows if row["measure"] == measure and row["mean_b"] and row["low"] is not None]
    clearest = sorted(chosen, key=lambda row: row["p"])
    pairs = list(dict.fromkeys(map(_pair, clearest)))[:_MOST_DRAWN]
    if not pairs:
        return None
    curves = []
    for scenario in dict.fromkeys(row["scenario"] for row in chosen):
        points = [
            Point(
                pairs.index(_pair(row)),
                *(100 * row[name] / abs(row["mean_b"]) for name in ("difference", "low", "high")),
            )
            for row in chosen
            if row["scenario"] == scenario and _pair(row) in pairs
        ]
        curves.append(Curve(scenario, sorted(points), joined=False))
    better = "higher" if COMPARED[measure] > 0 else "lower"
    numbers = _numbers(rows)
    is_long = sum(map(len, pairs)) > _MOST_LETTERS
    return Figure(
        f"Difference in {_TITLES[measure]} ({better} is better)",
        "pair, by its number in the table" if is_long else "a − b",
        "a − b, % of b",
        curves,
        categories=[str(numbers[pair]) for pair in pairs] if is_long else pairs,
        heights=[0.0],
    )


def _pair(row: Row) -> str:
    shared = options_text(row["options"])
    return f"{row['a']} − {row['b']}" + (f" ({shared})" if shared else "")


def _numbers(rows: list[Row]) -> dict[str, int]:
    return {pair: number for number, pair in enumerate(dict.fromkeys(map(_pair, rows)), 1)}


def _table(rows: list[Row]) -> Table:
    cells: list[list[Cell]] = []
    numbers = _numbers(rows)
    for row in rows:
        measure = row["measure"]
        unit = unit_of(measure, max(abs(row["mean_a"]), abs(row["mean_b"])))
        scale, name = (1.0, "") if unit is None else (unit.size, f", {unit.name}")
        values = [
            None if row[key] is None else row[key] / scale
            for key in ("mean_a", "mean_b", "difference", "low", "high")
        ]
        cells.append(
            [
                *(numbers[_pair(row)], row["scenario"], f"{_TITLES[measure]}{name}", row["a"], row["b"]),
                options_text(row["options"]),
                *(row["seeds"], *values, row["effect"], row["p_holm"], row["conclusion"]),
            ]
        )
    columns = (
        *(
            "pair",
            "scenario",
            "measure",
            "a",
            "b",
            "both",
            "seeds",
            "mean of a",
            "mean of b",
            "a − b",
            "from",
            "to",
        ),
        *("effect", "p (Holm)", "conclusion"),
    )
    return Table("Paired differences", columns, cells)
