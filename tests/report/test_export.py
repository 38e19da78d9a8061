"""Results for other programs: figures and tables for a paper, data frames, temporal networks."""

from __future__ import annotations

import csv
import re
import struct
from pathlib import Path

import networkx
import pytest

import precede
from precede.cli import main
from precede.core.errors import BadInput
from precede.lake.layout import Lake
from precede.lake.results import read_results
from precede.lake.stored_contacts import read_stored_contacts
from precede.report.figures import Curve, Figure, Point, pdf, svg, write_figure
from precede.traces.contacts import contact_list
from precede.traces.networks import contact_events, networkx_graph

FIGURE = Figure(
    "Waits",
    "lifetime",
    "wait, s",
    [Curve("delta_causal", [Point(0, 10.0, 8.0, 12.0), Point(1, 20.0, 19.0, 25.0)])],
    categories=("5min", "20min"),
)


def test_a_figure_is_as_wide_as_a_column_in_every_format(tmp_path: Path) -> None:
    files = write_figure(FIGURE, tmp_path, "waits", column=252)
    assert [file.suffix for file in files] == [".svg", ".pdf", ".png"]
    drawing = files[0].read_text()
    assert ' width="252pt"' in drawing
    assert ">Waits</text>" not in drawing, "a paper has a caption"
    assert ">Waits</text>" in svg(FIGURE)
    width = float(re.search(r'viewBox="0 0 (\d+) ', drawing)[1])  # type: ignore[index]
    assert 13 * 252 / width == pytest.approx(8, abs=0.02), "letters of 8 pt"
    page = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", files[1].read_bytes())
    assert page is not None
    assert float(page[1]) == 252
    assert struct.unpack(">I", files[2].read_bytes()[16:20]) == (2100,), "600 dots per inch"


def test_a_pdf_has_lines_and_letters_and_is_the_same_every_time() -> None:
    content = pdf(FIGURE, 252)
    assert content == pdf(FIGURE, 252)
    assert content.startswith(b"%PDF-")
    assert b"/FontFile2" in content
    assert b"/Subtype /Image" not in content


def test_a_sweep_is_exported_for_a_paper(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["export", "buses", "--lake", str(lake.root), "--out", str(tmp_path)]
    assert main([*call, "--measure", "delivery_ratio", "--column", "84mm"]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *(f"delivery_ratio.{suffix}" for suffix in ("svg", "pdf", "png")),
        *(f"buses.{suffix}" for suffix in ("tex", "csv", "md", "html")),
    }
    assert ">delivery ratio</text>" in (tmp_path / "delivery_ratio.svg").read_text().replace("\n", "")
    groups = {(row["scenario"], row["protocol"], row["options"]) for row in read_results(lake).groups("buses")}
    assert len(list(csv.reader((tmp_path / "buses.csv").open()))) == 1 + len(groups)
    assert r"\toprule" in (tmp_path / "buses.tex").read_text()
    capsys.readouterr()
    for wrong, text in (
        (["--measure", "delivery"], "--measure delivery: sweep 'buses' does not have it"),
        (["--column", "wide"], "--column wide: expected single, double"),
    ):
        assert main([*call, *wrong]) == 2
        assert text in capsys.readouterr().err
    assert main(["export", "nothing", "--lake", str(lake.root), "--out", str(tmp_path)]) == 2


def test_panels_of_several_scenarios_are_files_of_their_own(lake: Lake, tmp_path: Path) -> None:
    call = ["export", "offices", "--lake", str(lake.root), "--out", str(tmp_path), "--measure", "deliveries"]
    assert main(call) == 0
    assert {path.name for path in tmp_path.glob("*.pdf")} == {
        *("deliveries-small-office.pdf", "deliveries-crowded-office-toml.pdf")
    }


def test_a_sweep_as_frames_of_three_libraries(lake: Lake) -> None:
    sweep = precede.read_sweep("offices", lake.root)
    assert sweep.scenarios == ["small-office", "crowded-office.toml"]
    runs = sweep.frame()
    assert len(runs) == 2 * 2 * 2 * 2
    assert set(runs.columns) >= {"scenario", "protocol", "seed", "world.delay", "verdict", "deliveries"}
    results = read_results(lake)
    for row in runs.itertuples():
        assert row.deliveries == results.of_run(row.run_id)["deliveries"]
    groups = sweep.frame("polars", rows="groups")
    assert len(groups) == len(results.groups("offices"))
    assert groups.columns == sweep.frame("arrow", rows="groups").column_names
    with pytest.raises(BadInput, match="no sweep 'none'"):
        precede.read_sweep("none", lake.root)
    with pytest.raises(BadInput, match="library: expected pandas, polars or arrow"):
        sweep.frame("excel")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="rows: expected runs or groups"):
        sweep.frame(rows="columns")  # type: ignore[arg-type]


def test_a_run_as_frames_of_three_libraries() -> None:
    run = precede.simulate("small-office", "fifo", seed=7, settings={"workload.until": "2s"})
    assert len(run.frame("polars")) == len(run.frame("pandas")) == run.frame("arrow").num_rows
    assert run.frame("arrow", rows="gauges") is run.gauges
    with pytest.raises(BadInput, match="rows: expected events or gauges"):
        run.frame(rows="verdicts")  # type: ignore[arg-type]


def test_contacts_as_events_and_as_a_graph() -> None:
    contacts = contact_list(
        [("a", "b", 0, 2_000_000), ("b", "c", 2_000_000, 5_000_000), ("a", "b", 7_000_000, 8_000_000)]
    )
    assert [(at / 1e6, up, a + b) for at, up, a, b in contact_events(contacts)] == [
        *(
            (0, True, "ab"),
            (2, False, "ab"),
            (2, True, "bc"),
            (5, False, "bc"),
            (7, True, "ab"),
            (8, False, "ab"),
        )
    ]
    graph = networkx_graph(contacts)
    assert dict(graph.edges["a", "b"]) == {"contacts": 2, "duration_s": 3.0, "intervals": [(0, 2), (7, 8)]}


def test_a_trace_is_exported_as_a_temporal_network(lake: Lake, tmp_path: Path) -> None:
    assert main(["export", "day", "--lake", str(lake.root), "--out", str(tmp_path)]) == 0
    contacts = read_stored_contacts(lake, "day")
    events = list(csv.DictReader((tmp_path / "day.events.csv").open()))
    assert len(events) == 2 * len(contacts)
    assert [float(row["time"]) for row in events] == sorted(float(row["time"]) for row in events)
    open_pairs: set[tuple[str, str]] = set()
    for row in events:
        pair = row["a"], row["b"]
        assert (pair in open_pairs) == (row["event"] == "down")
        open_pairs ^= {pair}
    assert not open_pairs
    graph = networkx.read_graphml(tmp_path / "day.graphml")
    assert sum(edge["contacts"] for *_, edge in graph.edges(data=True)) == len(contacts)
    assert len(list(csv.reader((tmp_path / "day.contacts.csv").open()))) == 1 + len(contacts)
