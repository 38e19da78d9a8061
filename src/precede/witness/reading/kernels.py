"""The numba kernels that turn columns into histories (see `arrays.py` and `assembly.py`)."""

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from precede.files.kernel_cache import cached_kernel
from precede.witness.history import GHOST, Ints
from precede.witness.reading.column_names import BROADCAST, OTHER

F = TypeVar("F", bound=Callable[..., object])


def numba_kernel(function: F) -> F:
    """Compile a function with numba at its first call, and cache the result on disk for later processes."""
    return cached_kernel(function, nogil=True)


UNSEEN: Final = -(1 << 63)
"""The step of a process without rows so far."""

NO_MESSAGE: Final = -1
"""The source of a row that is neither a broadcast nor a delivery; the b-th broadcast row has -2 - b there."""

STORED_COLUMNS: Final = ("process", "step", "source", "number")
"""The columns of a stored row. A row is contiguous: grouping rows by process then writes to one place each."""

PROCESS, STEP, SOURCE, NUMBER = range(len(STORED_COLUMNS))

_HASH_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


@numba_kernel
def pair_codes(a: Ints, b: Ints, done: Ints, table: Ints, keys: Ints, count: Ints, out: Ints) -> Ints:
    """Number the distinct pairs (a, b) in the order of appearance, from row `done` on, with a hash table.

    Returns how many rows are done and the number of pairs; it stops when the hash table must grow.
    """
    mask = len(table) - 1
    last_key, last_code = np.int64(-1), np.int32(-1)
    for i in range(done, len(a)):
        key = (np.int64(a[i]) << 32) | (np.int64(b[i]) & 0xFFFFFFFF)
        if key != last_key or last_code < 0:
            slot = np.int64((np.uint64(key) * _HASH_FACTOR) >> np.uint64(33)) & mask
            while table[slot] >= 0 and keys[table[slot]] != key:
                slot = (slot + 1) & mask
            if table[slot] < 0:
                if count == len(keys):
                    return i, count
                table[slot] = count
                keys[count] = key
                count += 1
            last_key, last_code = key, table[slot]
        out[i] = last_code
    return len(a), count


@numba_kernel
def rehash(table: Ints, keys: Ints, count: Ints) -> Ints:
    """Enter all keys into an empty hash table."""
    mask = len(table) - 1
    for code in range(count):
        slot = np.int64((np.uint64(keys[code]) * _HASH_FACTOR) >> np.uint64(33)) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = code


@numba_kernel
def take_rows(
    process: Ints,
    step: Ints,
    kind: Ints,
    source: Ints,
    number: Ints,
    clock: Ints,
    numbered: Ints,
    first_step: Ints,
    last_step: Ints,
    gap_last: Ints,
    gap_next: Ints,
    stored: Ints,
    to_rows: Ints,
    to_clock: Ints,
    filled: Ints,
    broadcasts: Ints,
) -> Ints:
    """Append broadcasts and deliveries to `to_rows`, count them in `stored`, and check the steps of all rows.

    Returns the rows filled and the broadcasts so far; -1 instead of rows if a process's steps do not ascend. A
    broadcast row stores its number in the log, under which its deadline and destinations are kept apart.
    """
    timed = len(to_clock) > 0
    for i in range(len(process)):
        p = process[i]
        last = last_step[p]
        if last == UNSEEN:
            first_step[p] = step[i]
        elif step[i] <= last:
            return -1, broadcasts
        elif step[i] != last + 1 and gap_next[p] == UNSEEN:
            gap_last[p] = last
            gap_next[p] = step[i]
        last_step[p] = step[i]
        if kind[i] == OTHER:
            continue
        stored[p] += 1
        to_rows[filled, PROCESS] = p
        to_rows[filled, STEP] = step[i]
        to_rows[filled, NUMBER] = number[i]
        if timed:
            to_clock[filled] = clock[i]
        if kind[i] == BROADCAST:
            if numbered and source[i] != p:
                return -1, broadcasts
            to_rows[filled, SOURCE] = -2 - broadcasts
            broadcasts += 1
        else:
            to_rows[filled, SOURCE] = source[i]
        filled += 1
    return filled, broadcasts


@numba_kernel
def group_rows(rows: Ints, clock: Ints, place: Ints, fill: Ints, to_rows: Ints, to_clock: Ints) -> Ints:
    """Sort rows by process, keeping their order; `fill[p]` is the next free row of process p."""
    timed = len(to_clock) > 0
    for i in range(len(rows)):
        p = place[rows[i, PROCESS]]
        e = fill[p]
        fill[p] += 1
        for column in range(STEP, len(STORED_COLUMNS)):
            to_rows[e, column - STEP] = rows[i, column]
        if timed:
            to_clock[e] = clock[i]


@numba_kernel
def number_messages(
    start: Ints,
    source: Ints,
    number: Ints,
    numbered: Ints,
    events: Ints,
    base: Ints,
    message_source: Ints,
    message_number: Ints,
    position: Ints,
    arrival: Ints,
    contiguous: Ints,
) -> Ints:
    """Number the messages by process and step. Returns -1, or the first row whose number does not ascend.

    `arrival[m]` becomes how many broadcasts the log has before m's, `contiguous[p]` 0 if the numbers of p have
    holes.
    """
    count = 0
    for p in range(len(start) - 1):
        base[p] = count
        for e in range(start[p], start[p + 1]):
            if source[e] >= NO_MESSAGE:
                continue
            if numbered and count > base[p]:
                if number[e] <= message_number[count - 1]:
                    return e
                if number[e] != message_number[count - 1] + 1:
                    contiguous[p] = 0
            events[e] = 2 * count
            message_source[count] = p
            message_number[count] = number[e]
            position[count] = e
            arrival[count] = -2 - source[e]
            count += 1
    base[len(start) - 1] = count
    return -1


@numba_kernel
def find_numbered(
    start: Ints,
    source: Ints,
    number: Ints,
    place: Ints,
    events: Ints,
    base: Ints,
    message_number: Ints,
    contiguous: Ints,
) -> Ints:
    """Find the message of every delivery by source and number. Returns the number of deliveries without one."""
    ghosts = 0
    for e in range(start[0], start[len(start) - 1]):
        if source[e] < 0:
            continue
        s = place[source[e]]
        message = -1
        if s >= 0:
            low, high = base[s], base[s + 1]
            if low < high and contiguous[s]:
                offset = np.int64(number[e]) - message_number[low]
                if 0 <= offset < high - low:
                    message = low + offset
            else:
                end = high
                while low < high:
                    middle = (low + high) // 2
                    if message_number[middle] < number[e]:
                        low = middle + 1
                    else:
                        high = middle
                if low < end and message_number[low] == number[e]:
                    message = low
        if message < 0:
            events[e] = GHOST
            ghosts += 1
        else:
            events[e] = 2 * message + 1
    return ghosts


@numba_kernel
def find_labelled(source: Ints, number: Ints, message_of: Ints, events: Ints) -> Ints:
    """Find the message of every delivery by its opaque id. Returns the number of deliveries without one."""
    ghosts = 0
    for e in range(len(source)):
        if source[e] < 0:
            continue
        m = message_of[number[e]]
        if m < 0:
            events[e] = GHOST
            ghosts += 1
        else:
            events[e] = 2 * m + 1
    return ghosts


@numba_kernel
def sort_addresses(address_start: Ints, addresses: Ints) -> Ints:
    for m in range(len(address_start) - 1):
        addresses[address_start[m] : address_start[m + 1]].sort()
