"""A site shows the results that travel with the papers, where its own lake has none."""

from __future__ import annotations

from pathlib import Path

from precede.cli.data.report import stored_comparisons
from precede.lake.layout import Lake
from precede.report.site import build_site

PAPERS = Path(__file__).parents[2] / "papers"


def test_papers_that_the_lake_has_not_measured_show_stored_results(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    rows = stored_comparisons(PAPERS)
    measured = sorted({row["paper"] for row in rows})
    assert measured == [path.parent.name for path in sorted(PAPERS.glob("*/results.json"))]
    build_site(Lake(tmp_path / "lake"), tmp_path / "site", papers=PAPERS, stored=rows)
    for paper in measured:
        page = (tmp_path / "site" / f"paper-{paper}.html").read_text(encoding="utf-8")
        reproduced = sum(row["paper"] == paper and row["status"] == "reproduced" for row in rows)
        assert reproduced > 5
        assert f"precede reproduce {paper} --scale quick" in page
