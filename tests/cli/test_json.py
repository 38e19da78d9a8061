"""`--json`: which verbs have it, and that standard output is then JSON and nothing else."""

from __future__ import annotations

import json

import pytest
import typer.main

from precede import cli
from precede.cli.start.new import write_example
from precede.pipeline.mobility import contacts
from precede.report import site

WITHOUT = {
    "completion": "prints a script",
    "demo": "a story for people",
    "station": "writes its status as JSON to standard error",
}
"""Verbs without `--json`, each with the reason."""


def commands() -> dict[str, set[str]]:
    """Every command with its options: verbs, and the verbs below them as `keys make`."""
    options = {}
    for verb in cli.VERBS:
        root = typer.main.get_command(cli.app_of(verb))
        below = getattr(root, "commands", None)
        named = {verb: root} if below is None else {f"{verb} {name}": each for name, each in below.items()}
        for name, command in named.items():
            options[name] = {word for option in command.params for word in option.opts}
    return options


def test_every_command_has_json_or_a_reason_not_to():
    all_commands = commands()
    assert {"keys make", "lake check", "verify"} <= all_commands.keys()
    assert sorted(name for name, options in all_commands.items() if "--json" not in options) == sorted(WITHOUT)


def test_keys(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = output(capsys, "keys", "make", "k")[1]
    assert output(capsys, "keys", "show", "k")[1]["opens"] == [made["fingerprint"]]
    assert len(output(capsys, "keys", "export", "k")[1]["key"]) == 64
    rotated = output(capsys, "keys", "rotate", "k")[1]["fingerprint"]
    assert output(capsys, "keys", "promote", "k")[1]["seals"] == rotated != made["fingerprint"]
    public = output(capsys, "keys", "identity", "ana.identity", "ana")[1]["public"]
    (tmp_path / "roster").write_text(f"ana {public}\n")
    assert list(output(capsys, "keys", "roster", "roster")[1]["members"]) == ["ana"]
    signed = output(capsys, "keys", "sign", "roster", "--admin", "ana.identity")[1]
    assert (signed["epoch"], signed["members"], signed["signed_by"]) == (0, ["ana"], public)


def output(capsys, *arguments):
    code = cli.main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_conform_and_swarm(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_example("protocol", "named_parents", tmp_path)
    code, result = output(capsys, "conform", "named_parents:ENTRY", "--worlds", "1")
    assert (code, result["conforms"]) == (0, True)
    assert result["rows"][0]["protocol"] == "parents"
    assert result["rows"][0]["tally"]["worlds"] == 1
    text = (tmp_path / "named_parents.py").read_text().replace("if missing:", "if False:")
    (tmp_path / "impatient.py").write_text(text)
    code, result = output(
        capsys,
        "swarm",
        "--protocol",
        "impatient:ENTRY",
        "--worlds",
        "3",
        "--seed",
        "1",
        "--jobs",
        "1",
        "--no-shrink",
    )
    assert code == 1
    assert (result["worlds"], result["seed"], result["protocols"]) == (3, 1, ["impatient:ENTRY"])
    assert result["violations"] > 0
    assert result["failed"][0]["protocol"] == "impatient:ENTRY"


def test_ingest_and_measure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "meetings.csv").write_text("a,b,start,end\nana,ben,0,60\nben,ben,0,60\n")
    code, result = output(capsys, "ingest", "meetings.csv", "--as", "contacts")
    assert (code, result["name"], result["again"]) == (0, "meetings", False)
    assert (result["summary"]["rows_kept"], result["summary"]["rows_rejected"]) == (1, 1)
    assert cli.main(["simulate", "small-office", "--set", "until=2s", "--out", "run"]) == 0
    capsys.readouterr()
    code, result = output(capsys, "measure", "run")
    assert code == 0
    assert result["broadcasts"] > 0


def test_contacts(monkeypatch, capsys):
    computed = contacts.ComputedContacts(
        trace="bus", range_m=50.0, nodes=2, segments=4, slices=1, contacts=3, file="f"
    )
    monkeypatch.setattr(contacts, "estimate_cpu_s", lambda *_: 0.0)
    monkeypatch.setattr(contacts, "compute_contacts", lambda *_: computed)
    code, result = output(capsys, "contacts", "bus", "--range", "50")
    assert (code, result["contacts"], result["file"]) == (0, 3, "f")


def test_report(tmp_path, monkeypatch, capsys):
    built = site.Built(front=tmp_path / "index.html", pages=3, bytes=4, runs_left_out=1)
    monkeypatch.setattr(site, "build_site", lambda *_, **__: built)
    code, result = output(capsys, "report", "--lake", str(tmp_path), "--out", str(tmp_path / "site"))
    assert code == 0
    assert result == {"front": str(tmp_path / "index.html"), "pages": 3, "bytes": 4, "runs_left_out": 1}


@pytest.mark.parametrize("verb", sorted(cli.VERBS))
def test_help_shows_an_example(verb, capsys):
    assert cli.main([verb, "--help"]) == 0
    assert f"precede {verb}" in capsys.readouterr().out.partition("Example")[2]
