"""A finished sweep in the lake, as data frames: `precede.read_sweep`."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, Literal

import pyarrow as pa

from precede.core.errors import BadInput
from precede.experiments.frames import Library, as_frame
from precede.lake.layout import Lake
from precede.lake.results import Results, Row, read_results


class Sweep:
    """A sweep whose results are in a lake: `precede sweep` writes them, `read_sweep` reads them.

    >>> import precede
    >>> def best(name: str, lake: str) -> str:
    ...     groups = precede.read_sweep(name, lake).frame("pandas", rows="groups")
    ...     ratios = groups[groups["measure"] == "delivery_ratio"]
    ...     return str(ratios.loc[ratios["value"].idxmax(), "protocol"])
    """

    def __init__(self, name: str, results: Results) -> None:
        self.name = name
        self._results = results

    @property
    def scenarios(self) -> list[str]:
        """The names of the scenarios, in the order of the runs."""
        return list(dict.fromkeys(run["scenario"] for run in self._runs()))

    def frame(self, library: Library = "pandas", rows: Literal["runs", "groups"] = "runs") -> Any:
        """Return the results as a frame of pandas, Polars or Arrow.

        * `rows="runs"`: a row for each run: scenario, protocol, seed, the settings that the grid varied,
          status, verdict, and every measure as a column.
        * `rows="groups"`: a row for each group and measure: the mean over the seeds with its 95 % interval.

        Raises BadInput for another library or other rows.
        """
        if rows not in ("runs", "groups"):
            raise BadInput(f"rows: expected runs or groups, got {rows!r}")
        data = self._run_rows() if rows == "runs" else self._group_rows()
        names = dict.fromkeys(name for row in data for name in row)
        return as_frame(pa.table({name: [row.get(name) for row in data] for name in names}), library)

    def _runs(self) -> list[Row]:
        return [run for run in self._results.runs if run["sweep"] == self.name]

    def _run_rows(self) -> list[Row]:
        data = []
        for run in self._runs():
            verdict = self._results.verdicts.get(run["run_id"], {})
            row = {name: run[name] for name in ("run_id", "scenario", "protocol", "seed")}
            row |= _settings(run["options"])
            row |= {"status": run["status"], "verdict": verdict.get("verdict")}
            data.append(row | self._results.of_run(run["run_id"]))
        return data

    def _group_rows(self) -> list[Row]:
        columns = ("measure", "value", "low", "high", "runs")
        return [
            {name: group[name] for name in ("scenario", "protocol")}
            | _settings(group["options"])
            | {name: group[name] for name in columns}
            for group in self._results.groups(self.name)
        ]

    def __repr__(self) -> str:
        return f"<Sweep {self.name}: {len(self._runs()):,} runs of {', '.join(self.scenarios)}>"


def _settings(options: str) -> Row:
    settings = json.loads(options)
    return {
        key: value if isinstance(value, str | int | float) or value is None else json.dumps(value)
        for key, value in settings.items()
        if key != "protocol"
    }


def read_sweep(name: str, lake: str | PathLike[str] = "lake") -> Sweep:
    """Read the results of a sweep from a lake. Raises BadInput if the lake has no such sweep.

    >>> import precede
    >>> try:
    ...     precede.read_sweep("buses", "no-lake")
    ... except precede.BadInput as error:
    ...     print(error)
    no sweep 'buses' in no-lake (there are: none)
    """
    results = read_results(Lake(str(lake)))
    if name not in results.sweeps():
        raise BadInput(f"no sweep {name!r} in {lake} (there are: {', '.join(results.sweeps()) or 'none'})")
    return Sweep(name, results)
