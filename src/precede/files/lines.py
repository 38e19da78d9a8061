"""Lines and fields of the files of strangers, plain or gzipped, in bounded memory.

Raises `BadInput` for a line over a mebibyte, for a binary file, and for an archive that is broken or grows too
much when unpacked. Undecodable bytes inside a text are replaced.
"""

import codecs
import csv
import gzip
import io
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


class BadRow(Exception):
    """A row cannot be used. The text is the reason; its variable part comes after a colon."""


def numbered_lines(source: IO[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream without line ends, with their numbers from 1; `name` is for errors."""
    number, empty = 0, EmptyLines(name)
    try:
        for lines, binary in _blocks_of_lines(source):
            for line in lines:
                number += 1
                if len(line) >= MAX_LINE:
                    raise BadInput(f"{name}:{number}: a line of more than {MAX_LINE:,} characters")
                if binary and "\0" in line:
                    raise BadInput(f"{name}:{number}: a binary file, not text")
                if not line or line[0] == "#" or line.isspace():
                    empty.add(number)
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{name}: broken after line {number}: {error}") from error
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror or error}") from error


def _blocks_of_lines(source: IO[bytes]) -> Iterator[tuple[list[str], bool]]:
    """Yield whole lines, many at once, and whether a NUL is among them. A line that is too long is cut."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
    read = getattr(source, "read1", source.read)
    rest, ended = "", False
    while not ended:
        data = read(_BLOCK)
        ended = not data
        text = rest + decoder.decode(data, final=ended)
        *lines, rest = text.split("\n")
        if len(rest) > MAX_LINE or (ended and rest):
            lines.append(rest)
            ended = True
        yield lines, "\0" in text


@contextmanager
def opened(path: str | Path) -> Iterator[Iterator[tuple[int, str]]]:
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
            yield numbered_lines(io.BufferedReader(Unpacked(path.name, packed, unpacked), 1 << 16), path.name)
        elif magic.startswith(b"PK\x03\x04"):
            raise BadInput(f"{path.name}: a zip archive; only `--as gtfs` reads one")
        else:
            yield numbered_lines(source, path.name)


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
