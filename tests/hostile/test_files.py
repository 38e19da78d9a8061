"""Every reader against mutated files, and against files that are made to fill the memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede import cli
from precede.core.errors import BadInput
from precede.traces.reading import FORMATS, Options, load
from precede.witness.verify import verify
from tests.hostile.files import READERS, TABLES, Reader, fuzz

ROOT = Path(__file__).parents[2]
NAMES = [reader.name for reader in READERS]
BIT = b"a,1,broadcast,a,1\n"


@pytest.mark.parametrize("reader", READERS, ids=NAMES)
def test_three_hundred_mutated_files(reader: Reader, tmp_path: Path) -> None:
    outcome = fuzz(reader, 300, 11, tmp_path)
    assert outcome.failures == 0
    assert outcome.read > 10
    assert outcome.refused > 10


@pytest.mark.long
@pytest.mark.parametrize("reader", READERS, ids=NAMES)
def test_a_hundred_thousand_mutated_files(reader: Reader, tmp_path: Path) -> None:
    assert fuzz(reader, 100_000, 12, tmp_path).failures == 0


def within(megabytes: int, code: str, *arguments: str) -> str:
    """The output of a process whose memory may grow by at most so many MiB after its imports."""
    head = (
        "import resource, sys\n"
        "from precede.core.errors import BadInput\n"
        "from precede.traces.reading import load, Options\n"
        "from precede.witness.verify import verify\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (used + {megabytes << 20},) * 2)\n"
    )
    text = head + f"try:\n    {code}\nexcept BadInput as error:\n    print(error)\n"
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def sparse(path: Path, size: int, head: bytes, filler: bytes) -> Path:
    """Make a sparse file of `size` bytes that is one endless line."""
    with path.open("wb") as file:
        file.write(head + filler * ((40 << 20) // len(filler)))
        file.truncate(size)
    return path


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "gtfs"])
def test_a_line_of_ten_gigabytes_is_not_read_to_its_end(kind: str, tmp_path: Path) -> None:
    path = sparse(tmp_path / "endless", 10 << 30, b"", b"1 ")
    assert "endless:1: a line of more than 1,048,576 characters" in within(
        256, f"load(sys.argv[1], {kind!r})", str(path)
    )


@pytest.mark.parametrize(("head", "filler"), [(b"node,step,kind,message\n", b"a"), (b"", b'{"node":"a","x":"')])
def test_a_log_with_a_line_of_ten_gigabytes_is_refused(head: bytes, filler: bytes, tmp_path: Path) -> None:
    path = sparse(tmp_path / "endless.csv", 10 << 30, head, filler)
    assert "more than 16,777,216 characters" in within(512, "verify(sys.argv[1])", str(path))


def test_an_archive_that_grows_too_much_is_refused(tmp_path: Path) -> None:
    feed, log, trace = tmp_path / "feed.zip", tmp_path / "log.csv.gz", tmp_path / "trace.gz"
    with zipfile.ZipFile(feed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in TABLES.items():
            if name != "stop_times":
                archive.writestr(f"{name}.txt", text)
        with archive.open("stop_times.txt", "w") as table:
            table.write(TABLES["stop_times"].encode())
            for _ in range(200):
                table.write(b"t9,8:00:00,8:00:00,1,1," + b" " * 200_000 + b"\n")
    with gzip.open(log, "wb", 9) as packed:
        packed.write(b"node,step,kind,message_source,message_number\n")
        for _ in range(900):
            packed.write(b"a,1,sent," + b"x" * 100_000 + b",1\n")
    with gzip.open(trace, "wb", 9) as packed:
        for _ in range(30):
            packed.write(b"#" * 900_000 + b"\n")
    with pytest.raises(BadInput, match=r"feed\.zip/stop_times\.txt: grows more than 200-fold"):
        load(feed, "gtfs", Options(date="20240102"))
    with pytest.raises(BadInput, match="grows more than 200-fold"):
        verify(log)
    with pytest.raises(BadInput, match="grows more than 200-fold"):
        load(trace, "tij")


def test_a_table_that_claims_more_rows_than_it_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "claims.parquet"
    constant = {"node": "a", "step": 1, "kind": "sent", "message": "x"}
    schema = pa.schema([(name, pa.string() if name != "step" else pa.int64()) for name in constant])
    piece = pa.table({name: pa.repeat(value, 1_000_000) for name, value in constant.items()}).cast(schema)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(12):
            writer.write_table(piece, row_group_size=1_000_000)
    with pytest.raises(BadInput, match="claims 12,000,000 rows, too many for its size"):
        verify(path)


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "gtfs"])
def test_a_file_of_commas_is_a_file_of_rejects(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "commas.csv"
    path.write_bytes((b"," * 500_000 + b"\n") * 20)
    said = within(512, f"print(load(sys.argv[1], {kind!r}).summary.rows_kept)", str(path))
    assert said.strip() == "0" or "commas.csv" in said


def test_a_log_of_commas_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "commas.csv"
    path.write_bytes((b"," * 500_000 + b"\n") * 20)
    assert "column '' occurs twice" in within(512, "verify(sys.argv[1])", str(path))
    wide = b",".join(b"c%d" % place for place in range(100_000))
    path.write_bytes(b"node,step,kind,message," + wide + b"\n" + (b"a,1,sent,x," + b"," * 99_999 + b"\n") * 200)
    assert "step 1 of node a occurs twice" in within(1024, "verify(sys.argv[1])", str(path))


def test_an_error_about_a_file_is_short_and_printable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("node\x1b[31m,step" + "x" * 9000 + ",kind\na,1,broadcast\n")
    assert cli.main(["verify", str(path)]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert len(said) < 2200


@pytest.mark.parametrize(
    "arguments",
    [
        *(["ingest", "PATH", "--as", kind] for kind in FORMATS),
        ["verify", "PATH"],
        ["simulate", "PATH"],
        ["sweep", "PATH"],
        ["keys", "show", "PATH"],
    ],
    ids=" ".join,
)
def test_a_pipe_is_refused_in_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe, 0o600)
    given = [str(pipe) if word == "PATH" else word for word in arguments]
    if given[0] == "ingest":
        given += ["--lake", str(tmp_path / "lake")]
    assert cli.main(given) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "pipe.toml: not a regular file" in said


@pytest.mark.parametrize("line", [b"\n", b"#\n", b"\r"])
def test_millions_of_empty_lines_are_not_read_to_their_end(line: bytes, tmp_path: Path) -> None:
    path, log = tmp_path / "blank.csv", tmp_path / "log.csv"
    path.write_bytes(b"node,time,latitude,longitude\n" + line * 1_000_002)
    log.write_bytes(b"node,step,kind,message\n" + b"\n" * 1_000_002)
    for kind in ("gps", "tij", "contacts", "one"):
        with pytest.raises(BadInput, match=r"blank\.csv:\d+: 1,000,001 blank lines and comments"):
            load(path, kind)
    with pytest.raises(BadInput, match="1,000,001 blank lines"):
        verify(log)


def test_a_file_of_rejected_rows_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precede.files.rejects.MAX_REJECTS", 1000)
    path = tmp_path / "junk.txt"
    path.write_bytes(b"x\n" * 2_000_000)
    with pytest.raises(BadInput, match=r"20,000 of the first 20,000 rows are rejected"):
        load(path, "tij")


def test_a_gzip_that_grows_is_noticed_by_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", 9) as packed:
        packed.write(b"\n" + b"#" * (1 << 19) + b"\n")
        for _ in range(100):
            packed.write((b"#" * (1 << 19) + b"\n") * 2)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.truncate(size + (100 << 20))  # a large file, of which little has been read
    with pytest.raises(BadInput, match="grows more than 200-fold"):
        load(path, "tij")


def test_the_declared_sizes_of_a_zip_are_not_believed(tmp_path: Path) -> None:
    feed = tmp_path / "feed.zip"
    with zipfile.ZipFile(feed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in TABLES.items():
            archive.writestr(f"{name}.txt", text if name != "stops" else text + "\n" * (40 << 20))
    content = bytearray(feed.read_bytes())
    at = content.index(b"PK\x01\x02")
    while at >= 0:  # every entry of the directory declares a packed size of 2 GB
        content[at + 20 : at + 24] = (2 << 30).to_bytes(4, "little")
        at = content.find(b"PK\x01\x02", at + 4)
    feed.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        load(feed, "gtfs", Options(date="20240102"))
    assert "\n" not in str(refused.value)
    assert "feed.zip/" in str(refused.value)


def test_a_zip_packed_in_an_unusual_way_is_refused(tmp_path: Path) -> None:
    feed = tmp_path / "feed.zip"
    with zipfile.ZipFile(feed, "w", zipfile.ZIP_LZMA) as archive:
        for name, text in TABLES.items():
            archive.writestr(f"{name}.txt", text)
    with pytest.raises(BadInput, match="neither stored nor deflated"):
        load(feed, "gtfs", Options(date="20240102"))
