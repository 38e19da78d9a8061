"""The page of a run: verdict, space-time diagram, map, sizes over time, all measures."""

import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from precede.lake.columns import indices
from precede.lake.results import Results, Row
from precede.measures.messages import Window
from precede.report.figures import Curve, Figure, Point, svg
from precede.report.map_data import Stage, of_log, of_trace, page_map, script
from precede.report.packing import Ints
from precede.report.run_data import NO_AGES, Log, latency_figure, page_data, read_log
from precede.report.tables import Cell, Link, Table, html
from precede.report.units import readable
from precede.report.writing import Pages, options_text, page_name, slug

_SAMPLES: Final = 120
_LISTED: Final = 20
_MAIN: Final = (
    *("broadcasts", "receptions", "deliveries", "expected_deliveries", "delivery_ratio", "expired"),
    *("transit_us_mean", "wait_us_mean", "wait_us_max", "age_us_mean", "hop_count_mean", "overhead_ratio"),
    *("packets", "packet_bytes_mean", "control_bytes_mean", "control_entries_mean"),
)


class RunPages:
    """Writes the pages of runs. A map that several runs share is written once."""

    def __init__(self, pages: Pages, results: Results, events: int) -> None:
        self.pages, self.results, self.events = pages, results, events
        self._maps: dict[str, str | None] = {}
        self.ages: dict[str, Ints] = {}
        """The ages of deliveries of each run whose page was written."""

    def write(self, run: Row) -> str:
        run_id = run["run_id"]
        has_log = run["status"] == "finished" and self.results.lake.has("events", run_id)
        diagram = self._diagram(run) if has_log else _no_diagram()
        measures = self.results.of_run(run_id)
        rows: list[list[Cell]] = [
            [name, value, readable(name, value)] for name, value in sorted(measures.items())
        ]
        main: list[list[Cell]] = [[name, readable(name, measures[name])] for name in _MAIN if name in measures]
        return self.pages.write(
            page_name("run", run_id),
            "run.html",
            title=f"{run['protocol']}, {options_text(run['options']) or run['scenario']}, seed {run['seed']}",
            facts=self._facts(run),
            latency=self._latency(run_id, measures),
            gauges=self._gauges(run_id) if self.results.lake.has("gauges", run_id) else [],
            measures=html(Table("The main measures", ("measure", "value"), main)),
            all_measures=html(Table("All measures of this run", ("measure", "value", "reads"), rows)),
            command=run.get("command") or _command(run),
            description=json.dumps(run["about"], indent=2, ensure_ascii=False),
            traceback=run["traceback"],
            **diagram,
        )

    def _facts(self, run: Row) -> list[tuple[str, Any]]:
        """Return the list at the top of the page: names and values."""
        verdict = self.results.verdicts.get(run["run_id"])
        facts: list[tuple[str, Any]] = [("run", run["run_id"])]
        if verdict is not None:
            text = f"{verdict['order']} order: {verdict['verdict']}"
            if verdict["promised"] != verdict["order"]:
                text += f" (the protocol promises {verdict['promised']})"
            checked = verdict["deliveries_checked"]
            facts.append(("verdict", text if checked is None else f"{text}, {checked:,} deliveries checked"))
            facts += [("reason", reason) for reason in verdict["reasons"] or ()]
        if run["status"] != "finished":
            facts.append(("status", f"{run['status']}: {run['error']}"))
        page = run["protocol"]
        if "command" not in run:  # a run in a lake: its report has a page for each protocol
            page = Markup('<a href="{}">{}</a>').format(page_name("protocol", page), page)
        facts += [("protocol", page), ("scenario", run["scenario"]), *self._trace(run), ("seed", run["seed"])]
        facts += [(name, f"{run[name]:,}") for name in ("nodes", "rows") if run[name] is not None]
        return facts

    def _trace(self, run: Row) -> list[tuple[str, Any]]:
        """Return the trace of a run with a link to its page; nothing for a run without one."""
        world = run["about"]["world"]
        if "trace" not in world:
            return []
        unit = None if "command" in run else self.results.contacts_unit(world["trace"], world.get("range"))
        if unit is None:
            return [("trace", world["trace"])]
        return [("trace", Markup('<a href="{}">{}</a>').format(page_name("trace", unit), world["trace"]))]

    def _diagram(self, run: Row) -> dict[str, Any]:
        """Return the template's values for the diagram and the map, and write their data."""
        run_id = run["run_id"]
        violations = self.results.violations.get(run_id, [])
        first = (violations[0]["node"], violations[0]["step"]) if violations else None
        about = run["about"]
        window = Window.of_run(about.get("warmup"), about.get("cooldown"), run.get("end_us") or 0)
        log = read_log(self.results.lake, run_id, self.events, first, window)
        if not len(log.at_us):
            return _no_diagram()
        self.ages[run_id] = log.ages
        data = page_data(log, run_id, violations)
        until = data["end"]
        return {
            "diagram": True,
            "data": self.pages.data(run_id, script("run", data)),
            "map": self._map(run, until),
            "map_text": _map_text(run),
            "window": _window(log, until),
            "example": ", ".join(log.nodes[:2]),
            "example_message": log.name(0) if log.messages else "",
            "violations": html(self._violation_table(run_id, violations, log)) if violations else "",
            "story": violations[0]["explanation"] if violations else "",
        }

    def _violation_table(self, run_id: str, violations: list[Row], log: Log) -> Table:
        rows: list[list[Cell]] = []
        names = {log.name(message) for message in range(len(log.messages))}
        for row in violations[:_LISTED]:
            here = row["message"] in names
            shown: Cell = (
                Link(f"open {row['number'] + 1}", f"#violation={row['number']}")
                if here
                else "after this window"
            )
            rows.append([shown, row["kind"], row["node"], row["step"], row["message"], row["other"]])
        count = self.results.verdicts.get(run_id, {}).get("violations") or len(violations)
        more = f" (the first {_LISTED} of {count:,})" if count > _LISTED else ""
        columns = ("in the diagram", "kind", "node", "step", "message", "delivered after")
        return Table(f"Violations{more}", columns, rows)

    def _map(self, run: Row, until: int) -> str | None:
        """Write the data of the map; returns its address, or None if the run has no map."""
        world, lake = run["about"]["world"], self.results.lake
        if "trace" not in world:
            return self._store(f"map-{run['run_id']}", of_log(lake, run["run_id"], until))
        key = slug(f"map {world['trace']} {world.get('range', '')}")
        if key not in self._maps:
            unit = self.results.contacts_unit(world["trace"], world.get("range"))
            stage = None if unit is None else of_trace(lake, unit, world["trace"])
            self._maps[key] = self._store(key, stage)
        return self._maps[key]

    def _store(self, name: str, stage: Stage | None) -> str | None:
        return None if stage is None else self.pages.data(name, script("map", page_map(stage)))

    def _latency(self, run_id: str, measures: dict[str, float]) -> list[Markup]:
        """Return the figure of deliveries over the time since the broadcast; none if nothing was delivered."""
        figure = latency_figure("", {"deliveries": [(self.ages.get(run_id, NO_AGES), measures)]})
        return [] if figure is None else [svg(figure)]

    def _gauges(self, run_id: str) -> list[Markup]:
        table = self.results.lake.read("gauges", run_id, ["at_us", "name", "value", "peak"])
        names = sorted(table["name"].unique().to_pylist())
        which = indices(table["name"], names)
        at = table["at_us"].to_numpy().astype(np.int64)
        values, peaks = (table[name].to_numpy().astype(np.float64) for name in ("value", "peak"))
        return [
            svg(_sizes(name, at[which == k], values[which == k], peaks[which == k]))
            for k, name in enumerate(names)
        ]


def _sizes(name: str, at: Any, values: Any, peaks: Any) -> Figure:
    """Return the figure of one registry's size over time: mean over the nodes, and largest."""
    width = max(1, int(at.max()) // _SAMPLES + 1)
    interval = at // width
    hours = at.max() > 7_200_000_000
    scale = 3.6e9 if hours else 1e6
    mean, most = [], []
    for number in np.unique(interval):
        chosen = interval == number
        x = float(at[chosen].mean()) / scale
        mean.append(Point(x, float(values[chosen].mean())))
        most.append(Point(x, float(peaks[chosen].max())))
    curves = [
        Curve("mean over nodes", mean, marked=False),
        Curve("largest, peaks included", most, marked=False),
    ]
    return Figure(name.replace("_", " "), "time, h" if hours else "time, s", "entries", curves)


def _no_diagram() -> dict[str, Any]:
    names = ("data", "map", "map_text", "window", "example", "example_message", "story", "violations")
    return {**dict.fromkeys(names, ""), "diagram": False}


def _window(log: Log, until: int) -> str:
    """Return a sentence about which part of the run the page shows."""
    count = len(log.at_us)
    if count == log.rows:
        return f"All {count:,} events about messages."
    hours, rest = divmod(until // 1_000_000, 3600)
    end = f"{hours}:{rest // 60:02}:{rest % 60:02}"
    more = "use precede report --events to show more"
    return f"The first {count:,} of {log.rows:,} events about messages, up to {end} ({more})."


def _map_text(run: Row) -> str:
    world = run["about"]["world"]
    if "trace" in world:
        within = f" within {world['range']:g} m" if "range" in world else ""
        return f"The trace {world['trace']}: a line joins two nodes{within} of each other."
    if world.get("kind") == "cellular":
        return "Squares are stations; a host is drawn next to the station it heard last."
    return "Nodes have no positions in this world: they are drawn in a circle. A line is a packet that arrives."


def _command(run: Row) -> str:
    """Return the command that repeats this run, with the path of a scenario file from here."""
    settings = "".join(f" --set {key}={value}" for key, value in json.loads(run["options"]).items())
    scenario = run["scenario"]
    file = Path(run["about"].get("base", "")) / scenario
    if file.is_file():
        scenario = os.path.relpath(file)
    return f"precede simulate {scenario} --protocol {run['protocol']} --seed {run['seed']}{settings}"
