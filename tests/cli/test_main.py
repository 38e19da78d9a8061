"""What the shell sees of `precede`: exit codes and one-line answers, whatever a verb does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from precede import cli
from precede.core.errors import BadInput, Unavailable

ROOT = Path(__file__).parents[2]


@pytest.fixture
def verb(monkeypatch):
    """Install a verb `try` whose body is the given function."""

    def install(body):
        module = ModuleType("precede.cli.try")
        module.command = body
        monkeypatch.setitem(sys.modules, "precede.cli.try", module)
        monkeypatch.setitem(cli.VERBS, "try", cli.Verb("try", "a verb under test"))

    return install


def raising(error):
    def command() -> None:
        """Raise."""
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BadInput("log.csv, row 3: no such node"), 2, "precede try: log.csv, row 3: no such node"),
        (Unavailable("needs Java"), 3, "precede try: needs Java"),
        (ModuleNotFoundError("x", name="pyspark.sql"), 3, "pip install 'precede[spark]'"),
        (ModuleNotFoundError("no yyy", name="yyy"), 3, "failed: ModuleNotFoundError: no yyy"),
        (ValueError("two\nlines"), 3, "failed: ValueError: two lines"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_line_and_its_own_exit_code(verb, capsys, error, code, line):
    verb(raising(error))
    assert cli.main(["try"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert line in captured.err
    assert captured.err.count("\n") == 1


def test_what_a_verb_returns_is_the_exit_code(verb):
    def command(code: int) -> int | None:
        """Return."""
        return None if code == 9 else code

    verb(command)
    assert [cli.main(["try", str(code)]) for code in (0, 1, 9)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["tri"], "no verb 'tri' (did you mean 'try'?)"),
        (["--json"], "no option '--json' here"),
        (["try", "--nothing"], "No such option: --nothing"),
        (["try", "x"], "valid integer"),
    ],
)
def test_a_mistake_in_the_command_line_is_one_line_and_exit_2(verb, capsys, arguments, line):
    def command(code: int) -> None:
        """Take a number."""

    verb(command)
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_help_lists_the_verbs_and_a_bare_verb_shows_its_help(verb, capsys):
    def command(log: str) -> None:
        """Read a log."""

    verb(command)
    assert cli.main(["--help"]) == 0
    assert "a verb under test" in capsys.readouterr().out
    assert cli.main(["try"]) == 2
    assert "Read a log." in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    program = (
        "import sys, types; from precede import cli\n"
        "def command() -> None:\n    'Print.'\n    [print(i) for i in range(200000)]\n"
        "m = types.ModuleType('precede.cli.many'); m.command = command\n"
        "sys.modules['precede.cli.many'] = m; cli.VERBS['many'] = cli.Verb('many', '')\n"
        "sys.exit(cli.main(['many']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "0\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141


def test_without_typer_the_line_that_installs_it(tmp_path):
    program = (
        "import sys; sys.modules['typer'] = None; from precede import cli\n"
        "sys.exit(cli.main(['explain', '--help']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "pip install 'precede[cli]'" in done.stderr


def test_python_m_precede(capsys):
    done = subprocess.run(
        [sys.executable, "-m", "precede", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("precede ")


def test_a_sweep_here_needs_no_spark(tmp_path: Path) -> None:
    (tmp_path / "office.toml").write_text('[sweep]\nscenario = "small-office"\nprotocol = "fifo"\nseeds = 1\n')
    without = "import sys; sys.modules['pyspark'] = None; from precede.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", without, "sweep", "office.toml", "--here"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "office: 1 runs" in done.stdout


def test_an_error_in_a_spark_task_is_one_line_with_its_cause(verb, capsys):
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 5, in boom\n    f()\n    ^^^\n'

    class PythonException(Exception):
        pass

    def body() -> None:
        raise PythonException(
            f"An exception was thrown from the Python worker:\n{traceback}ValueError: no luck\n"
        )

    verb(body)
    assert cli.main(["try"]) == cli.FAILURE
    assert capsys.readouterr().err == (
        "precede try: failed: ValueError: no luck (in a Spark task) (PRECEDE_TRACEBACK=1 shows where) [E009]\n"
    )
