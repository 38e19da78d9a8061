"""The examples about screens: clocks of phones are fitted, links written, results become tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import mobiclique, same_screens


def test_offsets_of_clocks_are_fitted_from_single_hops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three phones; the clock of the third is 50 s ahead. A hop takes a second."""
    ahead = {"1": 0, "2": 0, "3": 50}
    sent, received = ["# Format"], ["# Format"]
    for number, (sender, receiver) in enumerate((("1", "2"), ("2", "1"), ("2", "3"), ("3", "2"), ("3", "1"))):
        at = 1000 * number
        sent.append(f"2;{number};100;{sender};{receiver};{at + ahead[sender]};0")
        received.append(f"2;{number};{receiver};{sender};{at + 1 + ahead[receiver]}")
    (tmp_path / "transmission.csv").write_text("\n".join(sent))
    (tmp_path / "reception.csv").write_text("\n".join(received))
    compared, seen = mobiclique.hops(tmp_path)
    assert (len(compared), len(seen)) == (5, 10)
    found = mobiclique.offsets(compared)
    assert found["3"] - found["1"] == pytest.approx(50, abs=1)
    assert found["2"] - found["1"] == pytest.approx(0, abs=1)
    links = tmp_path / "links.csv"
    assert mobiclique.main([str(tmp_path), str(links)]) == 0
    assert "5 hops compare 3 clocks" in capsys.readouterr().out
    lines = links.read_text().split()
    assert lines[0] == "a,b,start,end"
    assert len(lines) == 11


def test_tables_and_figure_name_every_world_rule_and_skew(tmp_path: Path) -> None:
    one = {"verdict": "violated", "broadcasts": 10, "shown": 50, "answer_first": 5, "answer_above": 2}
    one |= {"revisions": 10, "moved": 30, "wait_s": 0.5, "control_bytes": 5000}
    results = {
        f"{world}/{skew}/{rule}": one
        for world in same_screens.WORLDS
        for skew in same_screens.SKEWS
        for rule in same_screens.RULES
    }
    rest = same_screens.table_at_rest(results, list(same_screens.WORLDS))
    assert len(rest.rows) == 35
    assert rest.rows[0][4:10] == [100.0, 10.0, 4.0, 20.0, 3.0, 0.5]
    by_skew = same_screens.table_by_skew(results, list(same_screens.WORLDS))
    assert len(by_skew.rows) == 5 * 9
    figure = same_screens.figure_of(results, list(same_screens.WORLDS))
    assert [(curve.name, len(curve.points)) for curve in figure.curves] == [(w, 5) for w in same_screens.WORLDS]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{same_screens.BEGIN}\nold\n{same_screens.END}\nafter\n")
    same_screens.write_page("new\n", page)
    assert page.read_text() == f"before\n{same_screens.BEGIN}\nnew\n{same_screens.END}\nafter\n"


@pytest.mark.long
def test_a_run_of_a_world_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(same_screens.WORLDS, "pedestrians", ("30min", "5min", 500))
    result = same_screens.run("pedestrians", "120s", "timestamp", tmp_path)
    assert result["shown"] > 0
    assert result["verdict"] == "violated"
    assert result["answer_above"] > 0
