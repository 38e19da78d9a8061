"""Mutations of valid files, for fuzzing. The same seed gives the same sequence of files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Sequence
from random import Random

NUMBERS = [
    *b"0 1 -1 2 10 3.5 -0 007 1e3 1e308 1e-320 1e999 nan inf -inf 1_0 0x10 20240102 24:00:00 99:99:99".split(),
    b"",
    b"9" * 30,
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    "٣".encode(),
    "²".encode(),
    b"1" * 5000,
]
BYTES = [
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    "\u2028".encode(),
    b"\x1a",
    b"\r",
    b"\n\n",
    b'"',
    b'""',
]
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")

Mutation = Callable[[bytearray, Random, Sequence[bytes]], bytearray]


def bent(seeds: Sequence[bytes], words: Sequence[bytes], random: Random) -> bytes:
    """One of the valid files with one to four mutations, sometimes gzipped and mutated again."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.randint(1, 4)):
        how = random.choice(MUTATIONS)
        data = how(data, random, words)
    if random.random() < 0.1:
        data += random.choice(seeds)
    if random.random() < 0.03:
        data = bytearray(gzip.compress(bytes(data), 1))
        if random.random() < 0.5:
            data = random.choice(MUTATIONS[:4])(data, random, words)
    return bytes(data)


def _byte(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)
    return data


def _bit(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return data


def _cut(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    return data[: random.randint(0, len(data))] if random.random() < 0.3 else data[random.randint(0, 20) :]


def _without(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    begin = random.randint(0, len(data))
    del data[begin : begin + random.randint(1, 30)]
    return data


def _word(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    place = random.randint(0, len(data))
    data[place:place] = random.choice(words or BYTES)
    return data


def _special_bytes(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    place = random.randint(0, len(data))
    data[place:place] = random.choice(BYTES)
    return data


def _number(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    found = list(_NUMBER.finditer(data))
    if found:
        match = random.choice(found)
        data[match.start() : match.end()] = random.choice(NUMBERS)
    return data


def _lines(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    """Remove, repeat or move a line."""
    lines = bytes(data).split(b"\n")
    line = random.choice(lines)
    what = random.randrange(4)
    if what == 0:
        lines.remove(line)
    elif what == 1:
        lines.insert(random.randint(0, len(lines)), line)
    elif what == 2:
        random.shuffle(lines)
    else:
        lines += [line] * random.randint(1, 40)
    return bytearray(b"\n".join(lines))


def _repeat(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    """Insert a run of one character: a separator, a digit, a quote, a bracket."""
    place = random.randint(0, len(data))
    data[place:place] = random.choice(
        [b",", b";", b"\t", b" ", b"9", b'"', b"[", b"{", b"a", b"("]
    ) * random.choice([3, 50, 700])
    return data


def _ends(data: bytearray, random: Random, words: Sequence[bytes]) -> bytearray:
    return data.replace(b"\n", random.choice([b"\r\n", b"\r", b"\n\n", b" \n"]))


MUTATIONS: list[Mutation] = [
    _byte,
    _bit,
    _cut,
    _without,
    _word,
    _special_bytes,
    _number,
    _number,
    _lines,
    _repeat,
    _ends,
]
