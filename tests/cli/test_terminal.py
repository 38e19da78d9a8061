"""What only a terminal gets: progress, colours, the place of a mistake. A pipe gets none of it."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest

from precede import cli
from precede.cli import progress, terminal
from precede.cli.start.explain import page_of
from precede.cli.start.explanations import TABLE

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def attached(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal without colours, on which progress appears at once."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "_FIRST_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)
    monkeypatch.setenv("NO_COLOR", "1")
    return stream


def text_after(seconds: float, line: progress.Line) -> str:
    return line.text(line._began + seconds)


def test_a_line_has_counts_rate_and_time_left() -> None:
    line = progress.Line("sweep buses", "runs")
    assert text_after(3, line) == "sweep buses (0:03)"
    line(100, 1100)  # finished before: they say nothing about the rate
    line(300, 1100)
    assert text_after(10, line) == "sweep buses: 300 of 1,100 runs, 20/s, 0:40 left (0:10)"
    assert line.text(line._began + 10, 53) == "sweep bus…: 300 of 1,100 runs, 20/s, 0:40 left (0:10)"
    without_total = progress.Line("reading feed.zip", "rows")
    without_total(0)
    without_total(5_000)
    assert text_after(2, without_total) == "reading feed.zip: 5,000 rows, 2,500/s (0:02)"


def test_a_line_that_follows_asks_for_what_is_done() -> None:
    line, now = progress.Line("simulating", "simulated seconds"), [0]
    line.follow(lambda: now[0], 100)
    now[0] = 50
    assert text_after(5, line) == "simulating: 50 of 100 simulated seconds, 10/s, 0:05 left (0:05)"


def test_progress_is_cleared_and_what_is_printed_stands_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = attached(monkeypatch)
    with progress.working("swarm", "worlds", 3) as line:
        for done in range(1, 4):
            line(done)
            time.sleep(0.01)
        with line.aside():
            before = screen.getvalue()
            print("FAILED")
            time.sleep(0.01)
            assert screen.getvalue() == before  # nothing is written while something else is printed
    assert "of 3 worlds" in screen.getvalue()
    assert screen.getvalue().endswith("\r\033[K")
    assert capsys.readouterr().out == "FAILED\n"


def test_a_pipe_sees_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_FIRST_S", 0.0)
    with progress.working("swarm", "worlds", 3) as line:
        line(1)
        time.sleep(0.01)
    assert capsys.readouterr().err == ""


QUICK = {"protocols", "new", "explain", "completion", "doctor", "keys"}
FOR_EVER = {"node", "host", "station", "top", "play"}
"""Verbs that run until they are stopped."""


def test_every_verb_that_may_take_seconds_shows_progress() -> None:
    without = []
    for name, verb in cli.VERBS.items():
        source = ROOT / "src" / "precede" / "cli" / Path(*verb.module.split(".")).with_suffix(".py")
        if name not in QUICK | FOR_EVER and not re.search(r"\bworking\(", source.read_text(encoding="utf-8")):
            without.append(name)
    assert without == []


def test_the_rows_of_a_file_are_counted_for_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached(monkeypatch)
    (tmp_path / "log.csv").write_text("node\na\nb\n")
    assert progress.rows_of(tmp_path / "log.csv") == 3
    assert progress.rows_of(tmp_path / "log.csv.gz") is None


def test_colours_only_on_a_terminal_and_not_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert terminal.painted("holds", "green", Terminal()) == "\033[32mholds\033[0m"
    assert terminal.painted("holds", "green", io.StringIO()) == "holds"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.painted("holds", "green", Terminal()) == "holds"


SCENARIO = '[world]\nkind = "contacts"\ncontacts = "contacts.csv"\n{more}[run]\nprotocol = "{protocol}"\n'


@pytest.mark.parametrize(
    ("more", "protocol", "shown"),
    [
        ('rnage = "10"\n', "fifo", ['  4 | rnage = "10"', "    | ^^^^^"]),
        ('bandwidth = "fast"\n', "fifo", ['  4 | bandwidth = "fast"', "    |              ^^^^"]),
        ("", "fifoo", ['  5 | protocol = "fifoo"', "    |             ^^^^^"]),
        ('bandwidth = "inf\n', "fifo", ['  4 | bandwidth = "inf', "    |                 ^"]),
    ],
)
def test_a_caret_marks_the_place_in_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, protocol: str, shown: list[str]
) -> None:
    screen = attached(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contacts.csv").write_text("a,b,start,end\nana,ben,0,60\n")
    (tmp_path / "world.toml").write_text(SCENARIO.format(more=more, protocol=protocol))
    assert cli.main(["simulate", "world.toml"]) == 2
    lines = screen.getvalue().rpartition("\033[K")[2].splitlines()
    assert lines[0].startswith("precede simulate: world.toml:")
    assert lines[1:] == shown


def test_a_caret_marks_the_place_in_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = attached(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("node,step,kind,message\na,0,broadcast,m1\nb,ze\x1bro,delivered,m1\n")
    assert cli.main(["verify", "log.csv"]) == 2
    lines = screen.getvalue().rpartition("\033[K")[2].splitlines()
    assert "step is not a whole number" in lines[0]
    assert lines[1] == "  3 | b,ze ro,delivered,m1"
    assert "\x1b" not in "".join(lines)


def test_a_pipe_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "world.toml").write_text("[world]\nkidn = 1\n")
    assert cli.main(["simulate", str(tmp_path / "world.toml")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("verify log.csv --order causl", "(did you mean 'causal'?)"),
        ("verify log.csv", "did you mean --columns kind=knd?"),
        ("reproduce prs199", "(did you mean 'prs1997'?)"),
        ("ingest log.csv --as contcts", "(did you mean 'contacts'?)"),
        ("doctor --extra sprak", "(did you mean 'spark'?)"),
        ("verfy log.csv", "(did you mean 'verify'?)"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("node,step,knd,message\na,0,broadcast,m1\n")
    assert cli.main(line.split()) == 2
    assert hint in capsys.readouterr().err


def test_every_code_names_a_page_that_exists() -> None:
    for code in TABLE:
        assert (ROOT / page_of(code)).is_file()
