"""`precede verify` and `precede demo` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

BEGINNING = "node,step,kind,message\na,1,broadcast,x\nb,1,delivered,x\nb,2,broadcast,y\n"
GOOD = BEGINNING + "c,1,delivered,x\nc,2,delivered,y\n"
BAD = BEGINNING + "c,1,delivered,y\nc,2,delivered,x\n"


def precede(*arguments, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "precede", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
    )


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"

    def write(text):
        path.write_text(text)
        return path

    return write


def test_exit_codes_and_what_is_printed(log):
    done = precede("verify", log(GOOD))
    assert (done.returncode, done.stderr) == (0, "")
    assert "causal order holds" in done.stdout
    done = precede("verify", log(BAD))
    assert done.returncode == 1
    assert "causal order VIOLATED" in done.stdout
    assert "Node c delivered y before x, but x -> y." in done.stdout
    done = precede("verify", log(GOOD), "--order", "delta")
    assert done.returncode == 1
    assert "delta order UNKNOWN" in done.stdout
    done = precede("verify", log("nonsense"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_a_file_url_is_a_path(log, monkeypatch):
    monkeypatch.chdir(log(BAD).parent)
    by_path, by_url = precede("verify", log(BAD), "--json"), precede("verify", log(BAD).as_uri(), "--json")
    assert log(BAD).as_uri().startswith("file:///")
    assert (by_url.returncode, json.loads(by_url.stdout)) == (1, json.loads(by_path.stdout))


def test_json_is_one_object_with_the_agreed_keys(log):
    done = precede("verify", log(BAD), "--json")
    told = json.loads(done.stdout)
    assert list(told)[:6] == ["order", "verdict", "rows", "deliveries_checked", "violations", "first"]
    assert (told["order"], told["verdict"]) == ("causal", "violated")
    assert (told["rows"], told["deliveries_checked"], told["violations"]) == (5, 3, 1)
    assert told["first"]["chain"] == ["x", "y"]
    assert told["first"]["rows"][-1] == {"node": "c", "step": 2, "event": "delivered", "message": "x"}
    told = json.loads(precede("verify", log(GOOD), "--json").stdout)
    assert told == {
        "order": "causal",
        "verdict": "holds",
        "rows": 5,
        "deliveries_checked": 3,
        "violations": 0,
        "first": None,
    }


def test_standard_input(log):
    assert precede("verify", "-", stdin=BAD).returncode == 1
    assert precede("verify", "-", stdin="").returncode == 2


def test_help_shows_an_example():
    done = precede("verify", "--help")
    assert done.returncode == 0
    assert "Example:\n    precede verify" in done.stdout


def test_the_demo_prints_two_verdicts_and_a_story():
    done = precede("demo", "--small")
    assert done.returncode == 0, done.stderr
    assert "causal order: holds" in done.stdout
    assert "causal order: violated" in done.stdout
    assert 'but "dinner at eight?" -> yes -> "me too".' in done.stdout


def test_verifying_a_small_log_imports_neither_spark_nor_arrow(log):
    program = (
        "import sys; from precede import cli; "
        f"code = cli.main(['verify', {str(log(GOOD))!r}]); "
        "sys.exit(code or any(name in sys.modules for name in ('pyspark', 'pyarrow', 'numpy', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == 0


def test_members_are_judged_for_agreement(log):
    done = precede("verify", log(GOOD), "--order", "total", "--members", "b,c")
    assert done.returncode == 1
    assert "1 agreement" in done.stdout
    assert "c delivered y; b never did." in done.stdout
    done = precede("verify", log(GOOD), "--members", "b,c")
    assert done.returncode == 0, "agreement is asked of total order only"
