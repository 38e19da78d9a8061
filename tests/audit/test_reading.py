"""Logs of deployments as files: what they mean, and one line for what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede import cli
from precede.audit.bounds import bound
from precede.audit.event_files import read_event_files
from precede.audit.mobiclique import read_mobiclique
from precede.core.errors import BadInput

HEADER = "node,kind,message,at,peer,group\n"
CHAT = f"""{HEADER}ana,created,q,10.0,,room
ben,received,q,11.0,ana,
ben,created,a,12.5,,room
cem,received,a,13.0,ben,
cem,received,q,14.0,ana,
"""


def write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_log_of_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = read_event_files([write(tmp_path, CHAT)])
    assert log.groups == ["room"]
    assert bound(log.copies(), "causal", 0).at_least == 1
    assert cli.main(["audit", str(tmp_path / "log.csv"), "--seeds", "0"]) == 1
    shown = capsys.readouterr().out
    assert "Node cem delivered a before q, but q -> a." in shown
    write(tmp_path, CHAT.replace("14.0", "12.9"))
    assert cli.main(["audit", str(tmp_path / "log.csv"), "--margins", "0s", "--seeds", "0"]) == 0


def test_one_deployment_in_several_files_and_as_parquet(tmp_path: Path) -> None:
    rows = CHAT.splitlines(keepends=True)
    parts = [
        write(tmp_path, HEADER + "".join(rows[1:3]), "1.csv"),
        write(tmp_path, HEADER + "".join(rows[3:]), "2.csv"),
    ]
    csv = pytest.importorskip("pyarrow.csv")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(csv.read_csv(write(tmp_path, CHAT)), tmp_path / "log.parquet")
    whole = read_event_files([tmp_path / "log.csv"])
    for log in (read_event_files(parts), read_event_files([tmp_path / "log.parquet"])):
        assert log.first_copies == whole.first_copies
        assert log.created == whole.created


def test_a_copy_without_a_row_is_an_interval(tmp_path: Path) -> None:
    text = f"{HEADER}a,created,m,1,,\nb,sent,m,9,c,\nc,received,m,5,b,\n"
    log = read_event_files([write(tmp_path, text)])
    missing = [copy for copy in log.first_copies if not copy.is_row]
    assert [(copy.node, copy.latest_us) for copy in missing] == [("b", 9_000_000)]


def test_a_row_that_names_no_peer_adds_no_node(tmp_path: Path) -> None:
    text = "node,kind,message,at\na,created,m,1\nb,received,m,5\nb,sent,m,6\n"
    log = read_event_files([write(tmp_path, text)])
    assert [(copy.node, copy.is_row) for copy in log.first_copies] == [("b", True)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "no column 'node'"),
        ("node,kind,message\n", "no column 'at'"),
        (HEADER, "no row with kind created"),
        (f"{HEADER}a,made,m,1,,\n", ":2: unknown kind 'made' (known: created, received, sent)"),
        (f"{HEADER}a,created,m,soon,,\n", ":2: at is 'soon', not a number of seconds"),
        (f"{HEADER}a,created,m,inf,,\n", ":2: at is 'inf', not a number of seconds"),
        (f"{HEADER}a,created,m,1\n", ":2: expected 6 fields, got 4"),
        (f"{HEADER}a,created,m,1,,\nb,created,m,1,,\n", ":3: message 'm' was created before, by 'a'"),
        (f"{HEADER},created,m,1,,\n", ":2: node is empty"),
        (f"{HEADER}a,created,m,1,,\n", "there is nothing to audit"),
        (f'{HEADER}a,created,"m,1,,\n', "unexpected end of data"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    assert cli.main(["audit", str(write(tmp_path, text))]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
    assert error.endswith(" [E022]\n")


FILES = {
    "messages.csv": "# Format: msg_id;user_id;created;type;dst\n1;1;5;M;7\n2;2;9;U;1\n3;1;9;B;-1\n",
    "reception.csv": "# Format: type;msg_id;hop_src_user_id;hop_dst_user_id;dst_timestamp\n"
    "2;1;2;1;8\n1;-1;2;1;7\n",
    "transmission.csv": "# Format: type;msg_id;bytes;hop_src_user_id;hop_dst_user_id;src_timestamp;status\n"
    "2;1;300;1;2;8;0\n",
    "interests1.csv": "# Format: user_id;group_id\n2;7\n",
    "interests2.csv": "# Format: user_id;group_id;time_added\n3;7;4\n",
}


def mobiclique(folder: Path, **changed: str) -> Path:
    for name, text in (FILES | {f"{name}.csv": text for name, text in changed.items()}).items():
        (folder / name).write_text(text)
    return folder


def test_a_folder_of_mobiclique(tmp_path: Path) -> None:
    log = read_mobiclique(mobiclique(tmp_path))
    assert list(log.created) == ["1", "2"]
    assert log.unfollowed == 1
    assert [(copy.node, copy.message, copy.is_addressed) for copy in log.first_copies] == [("2", "1", True)]


@pytest.mark.parametrize(
    ("name", "row", "line"),
    [
        ("messages", "1;1;5;Q;7", "messages.csv:2: unknown type 'Q' (known: B, M, U)"),
        ("messages", "1;1;5;M;7\n1;1;6;M;7", "messages.csv:3: message 1 is there twice"),
        ("reception", "2;1;2", "reception.csv:2: expected 5 fields separated by ';', got 3"),
        ("transmission", "2;1;x;1;2;8;0", "transmission.csv:2: expected a whole number, got 'x'"),
    ],
)
def test_a_bad_row_of_mobiclique(tmp_path: Path, name: str, row: str, line: str) -> None:
    header = FILES[f"{name}.csv"].splitlines()[0]
    with pytest.raises(BadInput) as error:
        read_mobiclique(mobiclique(tmp_path, **{name: f"{header}\n{row}\n"}))
    assert line in str(error.value)


def test_another_header_or_another_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert "has not the files of MobiClique" in capsys.readouterr().err
    mobiclique(tmp_path, reception="# Format: other\n")
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert "reception.csv:1: expected '# Format: type;msg_id" in capsys.readouterr().err
