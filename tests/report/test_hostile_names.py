"""Hostile names on the pages of a site run no script, and no page is written outside its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from markupsafe import Markup

from precede.lake.layout import Lake
from precede.lake.schemas import COMPARISONS, GAUGES, MEASURES, RUNS, VERDICTS, VIOLATIONS
from precede.report.protocol_pages import Card
from precede.report.site import build_site, fresh_folder
from precede.report.writing import Pages
from tests.report.conftest import Watched
from tests.report.lakes import comparisons, made_up_log, write_table

SCRIPTS = (
    '<svg "><img src=x onerror=hit()>',
    "<table></table><script>hit()</script>",
    "\"'><svg onload=hit()>",
    "javascript:hit()",
    "</title></style><script>hit()</script>",
    "{{ hit() }}`${hit()}`\u2028hit()",
)
HIT = "window.hits = 0; window.hit = () => { window.hits += 1; };"


def hostile_lake(folder: Path, text: str) -> Lake:
    """A lake with one run in which every field of every table that a page shows is the given text."""
    lake = Lake(folder / "lake")
    run_id = "stranger"
    made_up_log(lake, run_id, 20, nodes=2)
    log = pq.read_table(lake.path("events", run_id))
    for name in ("node", "message_source"):
        renamed = [text if value == "n0" else value for value in log[name].to_pylist()]
        log = log.set_column(log.schema.get_field_index(name), name, [renamed])
    pq.write_table(log, lake.path("events", run_id))
    about = {"world": {"trace": text, "range": 5.0}, "base": text, text: text}
    common: dict[str, Any] = {"sweep": text, "run_id": run_id, "scenario": text, "protocol": text}
    options = json.dumps({"size": text})
    run = {field.name: text for field in RUNS.arrow() if field.type == "string"}
    run |= common | {"options": options, "seed": 1, "status": "finished", "nodes": 2, "rows": 60}
    run |= {"attempt": 0, "description": json.dumps(about)}
    failed = run | {"run_id": "failed", "status": "failed", "error": text, "traceback": text}
    write_table(lake, "runs", run_id, RUNS.arrow(), [run, failed])
    verdict = common | {"order": text, "promised": text, "verdict": text, "deliveries_checked": 3}
    verdict |= {"violations": 1, "reasons": [text], "findings": [text]}
    write_table(lake, "verdicts", run_id, VERDICTS.arrow(), [verdict])
    violation = {
        name: text for name in VIOLATIONS.arrow().names if VIOLATIONS.arrow().field(name).type == "string"
    }
    violation |= common | {"number": 0, "incarnation": 0, "step": 1, "message": f"{text}:1"}
    write_table(lake, "violations", run_id, VIOLATIONS.arrow(), [violation])
    measures = [
        common | {"scope": scope, "options": options, "measure": measure, "value": 1.0, "runs": 1}
        for scope in ("run", "group")
        for measure in (text, "deliveries")
    ]
    write_table(lake, "measures", run_id, MEASURES.arrow(), measures)
    gauge = {"run_id": run_id, "node": text, "at_us": 5, "name": text, "value": 1, "peak": 1}
    write_table(lake, "gauges", run_id, GAUGES.arrow(), [gauge])
    texts = {"claim": text, "place": text, "says": text, "measure": text, "reason": text, "reading": text}
    claims = [
        row | texts | {"paper": paper} for row, paper in zip(comparisons(), (text, "prs1997"), strict=False)
    ]
    claims[1] |= {"exhibit": "figure4"}
    write_table(lake, "comparisons", run_id, COMPARISONS.arrow(), claims)
    curves = lake.root / "exhibits" / "prs1997-quick"
    curves.mkdir(parents=True)
    (curves / "figure4-curves.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="hit()">'
        "<title>a</title><script>hit()</script></svg>"
    )
    return lake


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_hostile_names_run_no_script(tmp_path: Path, watched: Watched, number: int) -> None:
    text = SCRIPTS[number]
    lake = hostile_lake(tmp_path, text)
    cards = [Card(text, text, text, text, (text,), ((text, text, text),))]
    out = tmp_path / "deep" / "site"
    build_site(lake, out, cards)
    assert {path.parent.name for path in tmp_path.rglob("*.html")} == {"site"}, "a page outside its folder"
    pages = sorted(out.glob("*.html"))
    assert len(pages) >= 7
    watched.page.add_init_script(HIT)
    shown = 0
    for path in pages:
        page = watched.open(path)
        for link in page.locator("main a").all():
            target = (link.get_attribute("href") or "").partition("#")[0]
            assert not target or (out / target).is_file(), (path.name, target)
        watched.settle()
        assert page.evaluate("window.hits") == 0, path.name
        shown += text in (page.text_content("body") or "")
    assert shown >= 4, "the names are shown, as text"


def test_only_values_of_the_type_markup_are_inserted_unescaped(tmp_path: Path) -> None:
    pages = Pages(tmp_path)
    hostile = "<table><script>hit()</script>"
    pages.write("a.html", "tables.html", title=hostile, lead=hostile, sections=[])
    assert "<script>hit" not in (tmp_path / "a.html").read_text()
    pages.write("b.html", "tables.html", title="b", lead=Markup("<b>bold</b>"), sections=[])
    assert "<b>bold</b>" in (tmp_path / "b.html").read_text()


def test_a_content_security_policy_stops_a_script_that_reaches_a_page(tmp_path: Path, watched: Watched) -> None:
    pages = fresh_folder(tmp_path)
    hostile = Markup("<img src=x onerror=hit()><script>hit()</script>")
    pages.write("a.html", "tables.html", title="a", lead=hostile, sections=[])
    watched.page.add_init_script(HIT)
    page = watched.open(tmp_path / "a.html")
    watched.settle()
    assert page.evaluate("window.hits") == 0
    refused = [text for text in watched.wrong if "Content Security Policy" in text]
    assert len(refused) >= 2, watched.wrong
    watched.wrong.clear()
