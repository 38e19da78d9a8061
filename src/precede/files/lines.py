"""Lines and fields of the files of strangers, plain or gzipped, in bounded memory.

Raises `BadInput` for a line over a mebibyte, for a binary file, and for an archive that is broken or grows too
much when unpacked. Undecodable bytes inside a text are replaced.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from precede.core.errors import BadInput
from precede.files.inputs import Counted, EmptyLines, Unpacked, open_regular

MAX_LINE: Final = 1 << 20
MAX_NAME: Final = 200
_BLOCK: Final = 1 << 13
"""Bytes read at once. Of a broken archive, what comes before the block with the damage is read."""

_PART: Final = 1 << 15
"""Bytes of an irregular block that are decoded at once. Few, because `plain_block` encodes the others again."""

PLAIN_BYTES: Final = MAX_LINE // 2
LEAST_PLAIN_BYTES: Final = 1 << 15
"""The size of a block that is parsed by column. Fewer bytes are read sooner one line after the other."""
_BLANK_LINE: Final = re.compile(rb"\n\n")  # `search` takes a third of the time of `in`


class BadRow(Exception):
    """A row cannot be used. The text is the reason; its variable part comes after a colon."""


class NumberedLines(Iterator[tuple[int, str]]):
    """The lines of a stream without line ends, with their numbers from 1; `name` is for errors.

    Lines that are plain can also be taken as a block of bytes, for a reader that parses them by column.
    """

    def __init__(self, source: IO[bytes], name: str) -> None:
        self._name = name
        self._read = getattr(source, "read1", source.read)
        self._decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True
        )
        self._number = 0
        self._decoded: Iterator[str] = iter(())  # whole lines, shared by the generator and `plain_block`
        self._rest, self._has_nul, self._ended = "", False, False
        self._held = b""
        self._failure: Exception | None = None
        self._lines = self._numbered()

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self._lines

    def __next__(self) -> tuple[int, str]:
        return next(self._lines)

    def _numbered(self) -> Iterator[tuple[int, str]]:
        empty, name = EmptyLines(self._name), self._name
        try:
            while True:
                for line in self._decoded:
                    self._number += 1
                    if len(line) >= MAX_LINE:
                        raise BadInput(f"{name}:{self._number}: a line of more than {MAX_LINE:,} characters")
                    if self._has_nul and "\0" in line:
                        raise BadInput(f"{name}:{self._number}: a binary file, not text")
                    if not line or line[0] == "#" or line.isspace():
                        empty.add(self._number)
                    yield self._number, line
                if self._ended:
                    return
                self._decode()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(f"{name}: broken after line {self._number}: {error}") from error
        except OSError as error:
            raise BadInput(f"{name}: cannot be read: {error.strerror or error}") from error

    def _decode(self) -> None:
        """Read and decode some bytes, mostly many lines. A line that is too long is cut."""
        data, self._held = self._held[:_PART], self._held[_PART:]
        if not data and self._failure is not None:
            raise self._failure
        data = data or self._read(_BLOCK)
        self._ended = not data
        text = self._rest + self._decoder.decode(data, final=self._ended)
        *lines, self._rest = text.split("\n")
        if len(self._rest) > MAX_LINE or (self._ended and self._rest):
            lines.append(self._rest)
            self._ended = True
        self._decoded, self._has_nul = iter(lines), "\0" in text

    def plain_block(self, most: int, quotes: bool = False) -> tuple[int, bytes] | None:
        """Take the next whole lines, up to so many bytes, with the number of the first; None if irregular.

        Regular are blocks of some size in ASCII without single carriage returns, NULs, blank lines, `#` and,
        unless `quotes` is true, quotes. Other lines stay, to be read one by one. Lines of a block end with a
        line feed, also those that end with carriage return and line feed in the file.
        """
        waiting, flags = self._decoder.getstate()
        if self._ended or waiting or flags & 1:  # a part of a character, or a carriage return
            return None
        held = "\n".join([*self._decoded, self._rest]).encode() + self._held
        self._rest, parts, size = "", [held], len(held)
        try:
            while size < most and self._failure is None and (data := self._read(_BLOCK)):
                parts.append(data)
                size += len(data)
        except Exception as error:  # of whatever archive; raised when the lines before it have been read
            self._failure = error
        self._held = b"".join(parts)
        end = self._held.rfind(b"\n", 0, most) + 1
        block = self._held[:end]
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if not LEAST_PLAIN_BYTES <= end < MAX_LINE or not _is_plain(block, quotes):
            return None
        self._held = self._held[end:]
        first = self._number + 1
        self._number += block.count(b"\n")
        return first, block

    def put_back(self, block: bytes) -> None:
        """Put back the block that was taken last."""
        self._held = block + self._held
        self._number -= block.count(b"\n")


def _is_plain(block: bytes, quotes: bool) -> bool:
    return (
        block.isascii()
        and not block.startswith(b"\n")
        and (quotes or b'"' not in block)
        and not any(mark in block for mark in (b"#", b"\r", b"\0"))
        and not _BLANK_LINE.search(block)
    )


@contextmanager
def opened(path: str | Path) -> Iterator[NumberedLines]:
    """Open a file for a `with` block, as numbered lines; its first bytes show whether it is gzipped."""
    path = Path(path)
    with open_regular(path) as source:
        try:
            magic = source.peek(4)
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror or error}") from error
        if magic.startswith(b"\x1f\x8b"):
            packed = Counted(source)
            unpacked = gzip.GzipFile(fileobj=io.BufferedReader(packed, 1 << 16))
            yield NumberedLines(io.BufferedReader(Unpacked(path.name, packed, unpacked), 1 << 16), path.name)
        elif magic.startswith(b"PK\x03\x04"):
            raise BadInput(f"{path.name}: a zip archive; only `--as gtfs` reads one")
        else:
            yield NumberedLines(source, path.name)


def data_lines(lines: Iterable[tuple[int, str]], comment: str = "#") -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither blank nor a comment, stripped."""
    for number, line in lines:
        stripped = line.strip()
        if stripped and not stripped.startswith(comment):
            yield number, stripped


def fields_of_csv(line: str) -> list[str]:
    """Return the fields of one line of CSV, stripped; a quoted field may contain commas."""
    if '"' in line:
        try:
            return [value.strip() for value in next(csv.reader([line], skipinitialspace=True), [])]
        except csv.Error:
            return []
    return [value.strip() for value in line.split(",")]


def name_of(text: str) -> str:
    """Check a node's name: raises BadRow if it is empty, very long, or has control characters."""
    if not text:
        raise BadRow("empty name")
    if len(text) > MAX_NAME:
        raise BadRow(f"name of more than {MAX_NAME} characters: {shown(text)}")
    if not text.isprintable():
        raise BadRow(f"unprintable name: {shown(text)}")
    return text


def shown(text: str) -> str:
    """Return a text of an untrusted file quoted and shortened, for an error message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
