"""Command lines that are read without typer: typer would read them the same, and is not imported for them."""

from __future__ import annotations

import subprocess
import sys
from functools import wraps
from importlib import import_module
from typing import Any

import pytest
import typer.main
from hypothesis import given, settings
from hypothesis import strategies as st

from precede import cli
from precede.cli.parameters import Group
from precede.cli.plain_words import read_plain_words
from precede.cli.with_typer import typer_app

VALUES = [
    "3",
    "0",
    "007",
    "0.5",
    "2.50",
    "1e3",
    "-1",
    "-",
    "--",
    "",
    "x",
    "a=b",
    "bash",
    "ü",
    " 5",
    "5 ",
    "1_0",
]
VALUES += [
    "99999999999999999999",
    "\u0663",
    "\udc80",
    "a\nb",
    "--help",
    "-h",
    "--json",
    "--bogus",
    "../x/",
    "x//y",
]


def functions() -> dict[str, Any]:
    """Every verb and every verb of a group, as `keys make`, with its function."""
    found = {}
    for verb, (module, _) in cli.VERBS.items():
        imported = import_module(f"precede.cli.{module}")
        if isinstance(getattr(imported, "app", None), Group):
            found |= {f"{verb} {name}": function for name, function in imported.app.commands.items()}
        else:
            found[verb] = imported.command
    return found


FUNCTIONS = functions()


def recording(function: Any) -> Any:
    """A function with the parameters of this one, which returns what it was given."""

    @wraps(function)
    def record(**given: Any) -> dict[str, Any]:
        return given

    return record


RECORDING = {name: recording(function) for name, function in FUNCTIONS.items()}
APPS = {name: typer_app(function) for name, function in RECORDING.items()}
OPTIONS = {
    name: [
        word
        for option in typer.main.get_command(app).params
        for word in (*option.opts, *option.secondary_opts)
        if word.startswith("-")
    ]
    for name, app in APPS.items()
}


def by_typer(name: str, words: list[str]) -> Any:
    return APPS[name](args=words, prog_name="precede", standalone_mode=False)


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_typer_reads_the_same_from_words_that_are_plain(data):
    name = data.draw(st.sampled_from(sorted(FUNCTIONS)))
    value = st.sampled_from(VALUES)
    part = st.one_of(
        st.tuples(value),
        st.tuples(st.sampled_from([*OPTIONS[name], "--json"])),
        st.tuples(st.sampled_from([*OPTIONS[name], "--json"]), value),
        st.builds(lambda option, word: (f"{option}={word}",), st.sampled_from([*OPTIONS[name], "--o"]), value),
    )
    words = [word for part in data.draw(st.lists(part, max_size=4)) for word in part]
    plain = read_plain_words(RECORDING[name], words)
    if plain is not None:
        ours, theirs = plain[1], by_typer(name, words)
        assert ours == theirs
        assert [type(value) for value in ours.values()] == [type(theirs[each]) for each in ours]


@pytest.mark.parametrize(
    ("name", "words", "is_plain"),
    [
        ("simulate", "small-office --seed 7 --set loss=0.1 --set x=1 --out out/a --json", True),
        ("simulate", "small-office --seed=7 --no-rewrite", True),
        ("simulate", "small-office --seed -7", False),
        ("simulate", "small-office --seed 7 --seed 8", False),
        ("simulate", "--seed 7", False),
        ("simulate", "a b", False),
        ("simulate", "-- a", False),
        ("simulate", "small-office --se 7", False),
        ("simulate", "small-office --help", False),
        ("verify", "- --order total", True),
        ("verify", "log.csv --order", False),
        ("completion", "fish", True),
        ("completion", "tcsh", False),
        ("contacts", "bus --range 100 --slices 2", True),
        ("contacts", "bus --range 100 --slices 0", False),
        ("ingest", "a.csv b.csv --as gps", True),
        ("keys make", "picnic.keys --json", True),
        ("keys promote", "picnic.keys --keep 9", False),
    ],
)
def test_which_words_are_plain(name, words, is_plain):
    plain = read_plain_words(RECORDING[name], words.split())
    assert (plain is not None) == is_plain
    if plain is not None:
        assert plain[1] == by_typer(name, words.split())


def test_a_verb_of_a_group():
    group = import_module("precede.cli.field.keys").app
    assert read_plain_words(group, ["make", "picnic.keys"])[0] is FUNCTIONS["keys make"]
    assert read_plain_words(group, []) is None
    assert read_plain_words(group, ["picnic.keys"]) is None


def modules_after(tmp_path, *words: str) -> set[str]:
    """The modules that a command has imported at its end."""
    program = (
        "import sys\nfrom precede.cli import main\n"
        "code = main(sys.argv[1:])\nassert code == 0, code\n"
        "print('modules:', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return set(done.stderr.rpartition("modules: ")[2].split())


NEVER = {"pandas", "pyspark", "numba", "scipy", "matplotlib", "jinja2", "cryptography", "nacl", "asyncio"}


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (("--help",), {"typer", "pydantic", "rich", "numpy", "pyarrow", "precede.experiments"}),
        (("simulate", "--help"), {"numpy", "pyarrow", "precede.experiments"}),
        (("explain", "E042"), {"typer", "pydantic", "rich", "numpy", "pyarrow", "precede.experiments"}),
        (("simulate", "small-office", "--out", "out"), {"typer", "pydantic", "rich", "precede.cli.evidence"}),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_a_command_imports_only_what_it_needs(words, unused, tmp_path):
    assert not (NEVER | unused) & modules_after(tmp_path, *words)
