"""`precede keys` makes files that only their owner can read; `precede node` is a filter for lines."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import precede
from precede.cli import main
from precede.core.errors import BadInput
from precede.runtime.links.authorship import public_of
from precede.runtime.links.keyring import make_keys, newest_key, read_identity, read_keys, read_roster
from precede.runtime.names import group_key
from tests.runtime.test_examples import free_ports
from tests.runtime.watched import running

ROOT = Path(__file__).parents[2]


def test_keys_are_made_shown_and_rotated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "g.keys")
    assert main(["keys", "make", file]) == 0
    assert oct(os.stat(file).st_mode & 0o777) == "0o600"
    assert main(["keys", "make", file]) == 2
    capsys.readouterr()
    assert main(["keys", "export", file]) == 0
    secret = capsys.readouterr().out.strip()
    assert main(["keys", "rotate", file]) == 0
    assert read_keys(Path(file))[0].hex() == secret
    assert main(["keys", "show", file]) == 0
    shown = capsys.readouterr().out
    assert secret not in shown
    assert shown.count("opens") >= 2
    assert oct(os.stat(file).st_mode & 0o777) == "0o600"


def test_a_new_key_opens_everywhere_before_any_member_seals_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, ben = tmp_path / "ana.keys", tmp_path / "ben.keys"

    def carry() -> None:
        capsys.readouterr()
        assert main(["keys", "export", str(ana)]) == 0
        monkeypatch.setattr("sys.stdin", io.StringIO(capsys.readouterr().out))
        assert main(["keys", "take", str(ben)]) == 0

    assert main(["keys", "make", str(ana)]) == 0
    carry()
    old = read_keys(ana)
    assert read_keys(ben) == old
    assert main(["keys", "rotate", str(ana)]) == 0
    carry()
    fresh = newest_key(ana)
    assert read_keys(ana) == read_keys(ben) == (*old, fresh)
    assert main(["keys", "promote", str(ana)]) == 0
    assert read_keys(ana) == (fresh, *old)
    assert main(["keys", "promote", str(ben), "--keep", "1"]) == 0
    assert read_keys(ben) == (fresh,)
    monkeypatch.setattr("sys.stdin", io.StringIO("no key\n"))
    assert main(["keys", "take", str(ben)]) == 2


def test_a_roster_that_others_can_change_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roster = tmp_path / "g.roster"
    lines = []
    for name in ("ana", "ben"):
        assert main(["keys", "identity", str(tmp_path / name), name]) == 0
        lines.append(capsys.readouterr().out)
    roster.write_text("# ours\n" + "".join(lines))
    roster.chmod(0o644)
    assert read_roster(roster)["ana"] == public_of(read_identity(tmp_path / "ana"))
    roster.chmod(0o664)
    with pytest.raises(BadInput, match="others can change it"):
        read_roster(roster)
    roster.chmod(0o600)
    roster.write_text(lines[0] * 2)
    with pytest.raises(BadInput, match=":2: ana appears twice"):
        read_roster(roster)
    assert main(["keys", "identity", str(tmp_path / "x"), "two words"]) == 2


@pytest.mark.parametrize(
    ("content", "mode", "cause"),
    [
        ("ab" * 32, 0o644, "others can read it"),
        ("ab" * 31, 0o600, ":1: expected a key of 32 bytes, got 31"),
        ("zz" * 32, 0o600, ":1: not a key in hexadecimal"),
        ("# nothing", 0o600, "no key in it"),
    ],
)
def test_a_bad_key_file_is_refused_in_one_line(
    content: str, mode: int, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.keys"
    file.write_text(content)
    file.chmod(mode)
    assert main(["keys", "show", str(file)]) == 2
    assert cause in capsys.readouterr().err


def test_two_nodes_as_filters(tmp_path: Path) -> None:
    here, there = free_ports(2)
    assert main(["keys", "make", str(tmp_path / "g.keys")]) == 0

    def node(name: str, own: str, other: str) -> tuple[str, ...]:
        places = ("--bind", f"127.0.0.1:{own}", "--peer", f"127.0.0.1:{other}")
        members = ("--member", "ana", "--member", "ben", "--log", f"log/{name}")
        return ("node", name, "--keys", "g.keys", *places, *members)

    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with (
        running(*node("ana", here, there), cwd=tmp_path, env=env) as ana,
        running(*node("ben", there, here), cwd=tmp_path, env=env) as ben,
    ):
        ana.say("question")
        assert ben.line() == "ana\tquestion"
        ben.say("answer")
        ben.close_input()
        assert ana.lines(2) == ["ana\tquestion", "ben\tanswer"]
        ana.close_input()
        assert (ana.ended(), ben.ended()) == (0, 0)
    assert list((tmp_path / "log" / "ana").glob("events-*.parquet"))


def test_a_person_at_a_terminal_is_told_what_to_do_and_who_is_heard(tmp_path: Path) -> None:
    make_keys(tmp_path / "g.keys")
    here, there = free_ports(2)
    on_a_terminal = "import pty, sys; pty.spawn([sys.executable, '-m', 'precede', *sys.argv[1:]])"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

    def node(name: str, bind: str, peer: str) -> list[str]:
        return ["node", name, "--keys", "g.keys", "--bind", f"127.0.0.1:{bind}", "--peer", f"127.0.0.1:{peer}"]

    with running(*node("ana", here, there), program=("-c", on_a_terminal), cwd=tmp_path, env=env) as ana:
        ana.until(lambda line: "Type a line and Enter" in line, "out")
        with running(*node("ben", there, here), cwd=tmp_path, env=env):
            ana.until(lambda line: "precede node: ben is heard" in line, "out")


def test_a_node_without_keys_is_told_how_to_make_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "ana"]) == 2
    assert "precede keys make" in capsys.readouterr().err


def test_join_reads_the_key_file_that_keys_make_writes(tmp_path: Path) -> None:
    file = tmp_path / "town.keys"
    secret = make_keys(file)
    for key in (file, str(file)):
        assert precede.join("town", "ana", key=key)._settings.keys == (group_key(secret, "town"),)
    with pytest.raises(precede.BadInput, match=r"none\.keys: No such file"):
        precede.join("town", "ana", key=tmp_path / "none.keys")
