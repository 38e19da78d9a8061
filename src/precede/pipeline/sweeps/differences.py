"""Is one setting of a sweep better than another, where, and by how much: the table `differences`.

Two groups of runs are compared if they are of one scenario and differ in one setting: the protocol (with the
options that only one of the two has), or one option of the same protocol. Only runs with the same seed are
compared. All tests of a measure, over all pairs and scenarios of the sweep, are one family of Holm's
correction. The number of seeds is that of the sweep file: nothing stops early when a difference shows.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from precede.lake.schemas import DIFFERENCES
from precede.measures.paired import COMPARED, FEWEST_SEEDS, LEVEL, holm, paired_difference
from precede.pipeline.sweeps.results import sorted_json, table_of

Settings = Mapping[str, Any]
Values = Mapping[str, Mapping[int, float]]
_ROWS_AT_ONCE: Final = 10_000
"""So many rows are Python objects at a time: a sweep of 100,000 runs has a million of them."""


def differences(measures: pa.Table, seeds: Mapping[str, int], sweep: str) -> pa.Table:
    """Compare all groups of a sweep, from the run rows of its table of measures and the seed of each run."""
    rows: list[dict[str, Any]] = []
    for scenario, groups in _groups(measures, seeds).items():
        for (one, values), (other, other_values) in combinations(groups, 2):
            contrast = _contrast(one, other)
            if contrast is None:
                continue
            for measure in COMPARED:
                difference = paired_difference(values.get(measure, {}), other_values.get(measure, {}))
                if difference is not None:
                    rows.append(
                        {
                            "sweep": sweep,
                            "scenario": scenario,
                            "measure": measure,
                            **contrast,
                            **difference._asdict(),
                        }
                    )
    _conclude(rows)
    return table_of(DIFFERENCES, rows)


def _groups(measures: pa.Table, seeds: Mapping[str, int]) -> dict[str, list[tuple[Settings, Values]]]:
    """Return the groups of each scenario: their settings, and their values by measure and seed."""
    compared = pc.is_in(measures["measure"], pa.array(list(COMPARED)))
    chosen = measures.filter(pc.and_(pc.equal(measures["scope"], "run"), compared))
    groups: dict[tuple[str, str, str], dict[str, dict[int, float]]] = {}
    for batch in chosen.to_batches(_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            values = groups.setdefault((row["scenario"], row["protocol"], row["options"]), {})
            values.setdefault(row["measure"], {})[seeds[row["run_id"]]] = row["value"]
    by_scenario: dict[str, list[tuple[Settings, Values]]] = {}
    for (scenario, protocol, options), values in groups.items():
        settings = {**msgspec.json.decode(options), "protocol": protocol}
        by_scenario.setdefault(scenario, []).append((settings, values))
    return by_scenario


def _contrast(one: Settings, other: Settings) -> dict[str, str] | None:
    """Return in what two groups differ and what they share; None if they differ in more than one setting."""
    changed = [key for key in one if key in other and one[key] != other[key]]
    lonely = [key for key in (*one, *other) if (key in one) != (key in other)]
    if changed == ["protocol"]:
        factor = "protocol"
    elif len(changed) + len(lonely) == 1:
        factor = (*changed, *lonely)[0]
    else:
        return None
    shared = {key: value for key, value in one.items() if key in other and key != factor}
    return {
        "factor": factor,
        "a": ", ".join(_labels(one, factor, lonely)),
        "b": ", ".join(_labels(other, factor, lonely)),
        "options": sorted_json(shared),
    }


def _labels(settings: Settings, factor: str, lonely: list[str]) -> Iterator[str]:
    yield str(settings.get(factor, "not set"))
    yield from (f"{key} {settings[key]}" for key in lonely if key in settings and key != factor)


def _conclude(rows: list[dict[str, Any]]) -> None:
    """Add the corrected p value, the number of tests of its family, and the conclusion to each row."""
    for measure, direction in COMPARED.items():
        family = [row for row in rows if row["measure"] == measure and row["seeds"] >= FEWEST_SEEDS]
        for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
            row |= {"p_holm": p, "tests": len(family), "conclusion": "no difference shown"}
            if p < 1 - LEVEL:
                row["conclusion"] = "a is better" if row["difference"] * direction > 0 else "b is better"
    for row in rows:
        row.setdefault("conclusion", "too few seeds")
