"""Contact lists: merging, presence, files with errors, and writing them back."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from subprocess import run

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.traces.contacts import ContactList, contact_list, read_contacts
from precede.traces.writers import write_conn, write_contacts, write_presence

S = SECOND


def rows(contacts: ContactList) -> list[tuple[str, str, int, int]]:
    return [tuple(row) for row in contacts.rows()]


def file(folder: Path, text: str, name: str = "contacts.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_ids_are_in_natural_order_and_rows_are_merged():
    contacts = contact_list(
        [
            ("n10", "n2", 5 * S, 9 * S),
            ("n2", "n10", 0, 5 * S),
            ("n2", "n10", 20 * S, 30 * S),
            ("n1", "n2", 1, 2),
        ]
    )
    assert contacts.names == ("n1", "n2", "n10")
    assert rows(contacts) == [("n1", "n2", 1, 2), ("n2", "n10", 0, 9 * S), ("n2", "n10", 20 * S, 30 * S)]
    assert contacts.a.tolist() == [0, 1, 1]
    assert contacts.span() == (0, 30 * S)


def test_contacts_are_cut_to_presence():
    contacts = contact_list(
        [("a", "b", 0, 100), ("a", "c", 50, 60)],
        [("a", 10, 40), ("a", 50, 90), ("b", 0, 80), ("c", 0, 50), ("d", 5, 6)],
    )
    assert rows(contacts) == [("a", "b", 10, 40), ("a", "b", 50, 80)]
    assert contacts.names == ("a", "b", "c", "d")
    with pytest.raises(BadInput, match="c has contacts"):
        contact_list([("a", "c", 0, 1)], [("a", 0, 9)])


def test_csv_rows_with_errors_are_rejected(tmp_path: Path):
    path = file(
        tmp_path,
        "# a comment\na,b,start,end\n1,2,0,10\n2,1,5,20\n3,3,0,1\n1,2,9,8\n1,4,7,7\n1,2\n1,2,x,9\n1,,0,1\n"
        '"5,5",1, 0.5 ,1.25\n\n1,2,nan,3\n',
    )
    read = read_contacts(path)
    assert rows(read.contacts) == [("1", "2", 0, 20 * S), ("1", "5,5", S // 2, 5 * S // 4)]
    assert [(r.line, r.reason.split(":")[0]) for r in read.rejects] == [
        (5, "a node in contact with itself"),
        (6, "ends before it starts"),
        (7, "contact without length"),
        (8, "too few fields"),
        (9, "time is not a number"),
        (10, "empty name"),
        (13, "time is not finite"),
    ]
    [summary] = read.summaries
    assert (summary.rows_read, summary.rows_kept, summary.rows_rejected) == (10, 3, 7)
    assert summary.notes == {"contacts merged into another that they overlap or touch": 1}


def test_csv_may_be_gzipped_and_without_header(tmp_path: Path):
    path = tmp_path / "c.csv.gz"
    path.write_bytes(gzip.compress(b"x,y,1,2\r\nx,z,3,4\r\n", mtime=0))
    assert rows(read_contacts(path).contacts) == [("x", "y", S, 2 * S), ("x", "z", 3 * S, 4 * S)]


def test_conn_rows_with_errors_are_rejected(tmp_path: Path):
    path = file(
        tmp_path,
        "0 CONN 1 2 up\n5\tCONN\t2\t1\tup\n10 CONN 1 2 down WiFi\n11 CONN 1 2 down\n12 CONN 1 3 up\n"
        "12 CONN 3 1 down\n"
        "10 CONN 2 3 up\n9 CONN 2 3 down\n20 CONN 2 3 down\n20 CONN 2 3 up\n25 CONN 2 3 down\n26 CONN 4 5 up\n"
        "27 CONN 4 4 up\n28 CONN 6 7 sideways\n30 X y\n31 C M1 1 2 500\n31 CONN 8 9 up\nten CONN 1 2 up\n",
    )
    read = read_contacts(path)
    assert rows(read.contacts) == [
        ("1", "2", 0, 10 * S),
        ("2", "3", 10 * S, 25 * S),
        ("4", "5", 26 * S, 31 * S),
    ]
    assert sorted((r.line, r.reason.split(":")[0]) for r in read.rejects) == [
        (2, "up of a pair that is up"),
        (4, "down of a pair that is not up"),
        (5, "contact without length"),
        (6, "contact without length"),
        (8, "time before the pair's last"),
        (13, "a node in contact with itself"),
        (14, "neither up nor down"),
        (15, "unknown event"),
        (17, "contact never closed, begun as the trace ends"),
        (18, "time is not a number"),
    ]
    [summary] = read.summaries
    assert summary.rows_read == 18 == summary.rows_kept + summary.rows_rejected
    assert summary.notes == {
        "contacts merged into the one before that they touch": 1,
        "contacts never closed, ended with the trace": 1,
    }


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        (b"", "no rows"),
        (b"a,b,start,end\n", "no rows"),
        (b"\x00\x01\x02", "binary"),
        (b"one,two\nthree,four\n", "none of 2 rows"),
        (b"x" * 3_000_000, "line of more than"),
        (gzip.compress(b"1,2,3,4\n" * 1000, mtime=0)[:-20], "broken"),
        (gzip.compress((b" " * 9999 + b"\n") * 4000, 9, mtime=0), "fold"),
        (b"PK\x03\x04rest", "zip"),
    ],
)
def test_hostile_files_raise_one_line_of_bad_input(tmp_path: Path, content: bytes, expected_text: str):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=expected_text) as caught:
        read_contacts(path)
    assert "bad" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_bad_input(tmp_path: Path):
    with pytest.raises(BadInput, match="No such file"):
        read_contacts(tmp_path / "nowhere.csv")
    with pytest.raises(BadInput, match="directory"):
        read_contacts(tmp_path)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5).filter(
    lambda name: name.isprintable()
)
CONTACTS = st.lists(
    st.tuples(st.sampled_from(["1", "2", "10", "b"]), NAMES, st.integers(0, 10**9), st.integers(1, 10**9))
    .filter(lambda row: row[0] != row[1])
    .map(lambda row: (row[0], row[1], row[2], row[2] + row[3])),
    min_size=1,
    max_size=12,
)


@given(CONTACTS)
def test_a_contact_list_is_the_same_after_writing_and_reading(tmp_path_factory: pytest.TempPathFactory, drawn):
    folder = tmp_path_factory.mktemp("round")
    contacts = contact_list(drawn)
    write_contacts(contacts, folder / "c.csv")
    assert rows(read_contacts(folder / "c.csv").contacts) == rows(contacts)
    if not contacts.names[0].startswith("#"):
        write_conn(contacts, folder / "c.txt")
        assert rows(read_contacts(folder / "c.txt").contacts) == rows(contacts)


def test_presence_is_the_same_after_writing_and_reading(tmp_path: Path):
    contacts = contact_list([("a", "b", 10, 20)], [("a", 0, 15), ("b", 12, 30), ("b", 40, 50)])
    write_contacts(contacts, tmp_path / "c.csv")
    write_presence(contacts, tmp_path / "n.csv")
    again = read_contacts(tmp_path / "c.csv", nodes=tmp_path / "n.csv").contacts
    assert rows(again) == rows(contacts) == [("a", "b", 12, 15)]
    assert list(again.presence_rows()) == [("a", 0, 15), ("b", 12, 30), ("b", 40, 50)]


def test_reading_a_contact_list_does_not_import_numba():
    text = "import sys, precede.traces.contacts; assert 'numba' not in sys.modules"
    assert run([sys.executable, "-c", text], check=False).returncode == 0


def test_conn_rows_before_the_last_contact_stay_rejected_after_a_contact_without_length(tmp_path: Path):
    path = file(
        tmp_path,
        "0 CONN a b up\n10 CONN a b down\n20 CONN a b up\n20 CONN a b down\n5 CONN a b up\n30 CONN a b down\n"
        "40 CONN a b up\n50 CONN a b down\n60 CONN a b up\n",
    )
    read = read_contacts(path)
    assert rows(read.contacts) == [("a", "b", 0, 10 * S), ("a", "b", 40 * S, 50 * S)]
    assert [reject.line for reject in read.rejects] == [3, 4, 5, 6, 9]


@pytest.mark.parametrize(
    "rejected",
    [
        "99 X y\n",
        "99 CONN c d down\n",
        "99 CONN a b up\n",
        "99 C M1 a b -5\n",
        "99 CONN c d up\n99 CONN c d down\n",
    ],
)
def test_a_rejected_conn_row_does_not_extend_the_trace(tmp_path: Path, rejected: str):
    read = read_contacts(file(tmp_path, f"0 CONN a b up\n{rejected}5 C M1 a b 500\n7 CONN e f up\n"))
    assert rows(read.contacts) == [("a", "b", 0, 7 * S)]
