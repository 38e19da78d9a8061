"""The lines of strangers' files, read many at once: the same lines and errors as one by one."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from typing import IO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from precede.core.errors import BadInput
from precede.files import lines as tested
from precede.files.inputs import EmptyLines

LONGEST = 40
PIECES = (
    b"\n",
    b"\r\n",
    b"\r",
    b"a,b",
    b" ",
    b"#",
    b"\t",
    b"\0",
    b"\xff",
    b"\xe2\x82",
    "é".encode(),
    b"\xef\xbb\xbf",
)


def one_by_one(source: IO[bytes], name: str) -> Iterator[tuple[int, str]]:
    """The reader that takes one line at a time."""
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="replace", newline=None)
    number, empty = 0, EmptyLines(name)
    try:
        while line := text.readline(LONGEST + 1):
            number += 1
            if len(line.rstrip("\n")) >= LONGEST:
                raise BadInput(f"{name}:{number}: a line of more than {LONGEST:,} characters")
            if "\0" in line:
                raise BadInput(f"{name}:{number}: a binary file, not text")
            if line[0] == "#" or line.isspace():
                empty.add(number)
            yield number, line.rstrip("\n")
    except (EOFError, gzip.zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{name}: broken after line {number}: {error}") from error


def lines_of(reader: Callable[[IO[bytes], str], Iterator[tuple[int, str]]], source: IO[bytes]) -> list[object]:
    """What a reader yields, and the error with which it ends."""
    read: list[object] = []
    try:
        for line in reader(source, "f"):
            read.append(line)
    except BadInput as error:
        read.append(str(error))
    return read


@settings(max_examples=400)
@given(some.lists(some.sampled_from(PIECES) | some.binary(max_size=50), max_size=60).map(b"".join))
def test_any_bytes_give_the_same_lines(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tested, "MAX_LINE", LONGEST)
        patch.setattr(tested, "_BLOCK", 7)
        assert lines_of(tested.NumberedLines, io.BytesIO(data)) == lines_of(one_by_one, io.BytesIO(data))


@pytest.mark.parametrize("damage", [0, 1, 2, 3, 4, 5, 6, 7])
def test_a_broken_archive_gives_the_same_lines_before_the_damage(
    damage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tested, "MAX_LINE", LONGEST)
    rows = b"".join(b"n%d,%d,%d\n" % (i * 7919 % 1000, i, i * i % 1_000_003) for i in range(20_000))
    packed = bytearray(gzip.compress(rows, 6))
    where = len(packed) * (damage + 1) // 9
    if damage % 2:
        packed[where] ^= 0x55
    else:
        del packed[where:]

    def opened() -> IO[bytes]:
        return io.BufferedReader(gzip.GzipFile(fileobj=io.BytesIO(bytes(packed))), 1 << 16)

    read = lines_of(tested.NumberedLines, opened())
    assert isinstance(read[-1], str), "it does not end with an error"
    assert read == lines_of(one_by_one, opened())
