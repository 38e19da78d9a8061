"""`papers/<key>/reading.md`: every section, figure and table is done or not, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from precede.experiments.tables import read_toml
from precede.reproduction.claims import experiments_of, read_claims, read_reasons
from precede.reproduction.exhibits import read_figures
from precede.reproduction.units import PAPERS

ROOT = Path(__file__).parents[2]
SECTIONS = {
    "was2021": "1 2 3 4.1 4.2 4.3 4.4 4.5 5.1 5.2 5.3 6 7",
    "drift2006": "1 2 3 4.1 4.2 4.3 4.4 5.1 5.2 5.3 5.4 5.5 6 7 8",
    "vcube2018": "1 2 3 4.1 4.2 4.3 4.4 5 5.1 5.2 5.3 5.4 5.5 6 7",
    "prs1997": "1 2 3 4 4.1 5.1 5.2 5.3 6 7.1 7.2 7.3 7.4 8.1 8.2 8.3 9.1 9.2 9.3 10",
}
"""The sections of the papers whose sections have numbers."""
FIGURES = {"was2021": 10, "drift2006": 10, "vcube2018": 11, "prs1997": 8}
TABLES = {"vcube2018": 3}
PLACES = ("", "src/precede", "papers/{key}", "src/precede/protocols/{key}", "src/precede/protocols/floods")
"""Where a reading's files are: it names them from the package, or from the paper's own folders."""


def reading(key: str) -> str:
    return (ROOT / "papers" / key / "reading.md").read_text(encoding="utf-8")


def rows(key: str) -> list[list[str]]:
    """The rows of the table of sections: section, done, where."""
    table = reading(key).partition("## Sections, done or not")[2]
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed(text: str, word: str = "") -> set[str]:
    """The numbers in a text that follow a word, with those in between: `Figures 2 to 4` has 2, 3 and 4."""
    numbers: set[str] = set()
    plain = re.sub(r"\([a-z]\)|Algorithm \d", "", text)
    for group in re.findall(rf"{word}([\d.]+(?:(?:, | and | to )[\d.]+)*)", plain):
        for part in re.split(r", | and ", group):
            first, _, last = part.partition(" to ")
            prefix, _, low = first.rpartition(".")
            high = (last or first).rpartition(".")[2]
            numbers |= {f"{prefix}.{n}" if prefix else str(n) for n in range(int(low), int(high) + 1)}
    return numbers


@pytest.mark.parametrize("key", sorted(SECTIONS))
def test_every_section_figure_and_table_of_the_paper_is_listed(key):
    sections = [re.split(r"Figures? |Tables? ", section)[0] for section, *_ in rows(key)]
    known = set().union(*map(listed, sections))
    missing = [one for one in SECTIONS[key].split() if one not in known and one.split(".")[0] not in known]
    assert not missing
    first = " | ".join(section for section, *_ in rows(key))
    assert {str(n) for n in range(1, FIGURES[key] + 1)} <= listed(first, "Figures? ")
    assert {str(n) for n in range(1, TABLES.get(key, 0) + 1)} <= listed(first, "Tables? ")


def test_numbers_in_a_text_are_listed_with_those_in_between():
    assert listed("5.1 to 5.3 packets, Figures 2 to 4", "Figures? ") == {"2", "3", "4"}
    assert listed("5.1 to 5.3 packets") == {"5.1", "5.2", "5.3"}
    assert listed("Figure 10(a) and (b)", "Figures? ") == {"10"}
    assert listed("4, 4.1 example") == {"4", "4.1"}
    assert listed("4.2 Algorithm 1, 4.3") == {"4.2", "4.3"}


@pytest.mark.parametrize("key", PAPERS)
def test_what_is_not_done_has_a_reason(key):
    assert len(rows(key)) > 5
    for section, done, where in rows(key):
        assert done, section
        assert len(where) > 3, section


@pytest.mark.parametrize("key", PAPERS)
def test_files_that_a_reading_names_exist(key):
    named = {name for name in re.findall(r"`([\w./*-]+)`", reading(key)) if re.search(r"\w/\w|\w\.py$", name)}
    assert len(named) > 3
    for name in sorted(named):
        found = [path for place in PLACES for path in (ROOT / place.format(key=key)).glob(name)]
        assert found, name


@pytest.mark.parametrize("key", sorted(SECTIONS))
def test_every_experiment_answers_something(key):
    folder = ROOT / "papers" / key
    tables, _ = read_toml(folder / "experiments.toml")
    evidence = read_reasons(folder / "reasons.toml").evidence
    used = experiments_of([*read_claims(folder / "claims.toml").claim, *evidence])
    used |= {name for spec in read_figures(folder / "figures.toml") for name in spec.experiments}
    used |= set(re.findall(r"`([\w-]+)`", reading(key)))
    assert not set(tables["experiment"]) - used
