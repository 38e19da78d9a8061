"""The release: the same commit gives the same bytes; what differs is named; interpreters that do not answer."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from releasing import interpreters
from releasing.build import differences, normal_archive


def archive(names: list[str], at: int, user: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = len(name), at, user, 0o600
            packed.addfile(member, io.BytesIO(name.encode()))
    return buffer.getvalue()


def test_an_archive_does_not_tell_who_packed_it_when_and_in_which_order() -> None:
    one = normal_archive(archive(["p/b", "p/a"], 1_700_000_001, "ana"), 1_600_000_000)
    assert one == normal_archive(archive(["p/a", "p/b"], 1_700_000_999, "ben"), 1_600_000_000)
    with tarfile.open(fileobj=io.BytesIO(one)) as packed:
        assert [(each.name, each.mtime, each.mode) for each in packed.getmembers()] == [
            ("p/a", 1_600_000_000, 0o644),
            ("p/b", 1_600_000_000, 0o644),
        ]


def wheel(path: Path, **members: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in members.items():
            packed.writestr(zipfile.ZipInfo(name), text)


def test_two_builds_that_differ_name_the_members(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        wheel(folder / "same.whl", core="1")
    assert differences(first, second) == []
    wheel(first / "one.whl", core="1", sim="2")
    wheel(second / "one.whl", core="1", sim="3", lake="4")
    wheel(second / "more.whl", core="1")
    assert differences(first, second) == ["more.whl: built only once", "one.whl: lake, sim"]


def test_only_interpreters_that_answer_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "{}.{}".format(*sys.version_info)
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert list(interpreters.find_interpreters()) == [version]
