"""The compiled loops that turn columns into histories (see `arrays.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import numba
import numpy as np

from precede.witness.history import GHOST, Ints
from precede.witness.reading.column_names import BROADCAST, OTHER

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile at the first call, and keep it beside the file for later processes."""
    loop: F = numba.njit(cache=True, nogil=True)(function)
    return loop


UNSEEN: Final = -(1 << 63)
"""The step of a process of which nothing was read."""

NO_MESSAGE: Final = -1
"""In a column of sources: neither a broadcast nor a delivery. Broadcast number b is -2 - b."""

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


@compiled
def pair_codes(a: Ints, b: Ints, done: Ints, table: Ints, keys: Ints, count: Ints, out: Ints) -> Ints:
    """Number the pairs (a, b) in the order in which they appear; stops when the table wants to grow."""
    mask = len(table) - 1
    last_key, last_code = np.int64(-1), np.int32(-1)
    for i in range(done, len(a)):
        key = (np.int64(a[i]) << 32) | (np.int64(b[i]) & 0xFFFFFFFF)
        if key != last_key or last_code < 0:
            slot = np.int64((np.uint64(key) * _SPREAD) >> np.uint64(33)) & mask
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


@compiled
def rehash(table: Ints, keys: Ints, count: Ints) -> Ints:
    mask = len(table) - 1
    for code in range(count):
        slot = np.int64((np.uint64(keys[code]) * _SPREAD) >> np.uint64(33)) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = code


@compiled
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
    to_process: Ints,
    to_step: Ints,
    to_source: Ints,
    to_number: Ints,
    to_clock: Ints,
    filled: Ints,
    broadcasts: Ints,
) -> Ints:
    """Keep broadcasts and deliveries, and check the steps of all rows; -1 for rows out of order.

    Broadcasts are counted as they come, so that what only they carry can be kept apart.
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
        to_process[filled] = p
        to_step[filled] = step[i]
        to_number[filled] = number[i]
        if timed:
            to_clock[filled] = clock[i]
        if kind[i] == BROADCAST:
            if numbered and source[i] != p:
                return -1, broadcasts
            to_source[filled] = -2 - broadcasts
            broadcasts += 1
        else:
            to_source[filled] = source[i]
        filled += 1
    return filled, broadcasts


@compiled
def group_rows(
    process: Ints,
    place: Ints,
    fill: Ints,
    step: Ints,
    source: Ints,
    number: Ints,
    clock: Ints,
    to_step: Ints,
    to_source: Ints,
    to_number: Ints,
    to_clock: Ints,
) -> Ints:
    """Put every row where its process's rows stand, in the order in which they came."""
    timed = len(to_clock) > 0
    for i in range(len(process)):
        p = place[process[i]]
        e = fill[p]
        fill[p] += 1
        to_step[e] = step[i]
        to_source[e] = source[i]
        to_number[e] = number[i]
        if timed:
            to_clock[e] = clock[i]


@compiled
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
    told: Ints,
    contiguous: Ints,
) -> Ints:
    """Number the broadcasts by process and step; -1, or the row whose number does not ascend.

    `told[m]` says which broadcast, as they came, message m is.
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
            told[count] = -2 - source[e]
            count += 1
    base[len(start) - 1] = count
    return -1


@compiled
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
    """Give every delivery its message, by source and number; how many have none."""
    ghosts = 0
    for e in range(start[0], start[len(start) - 1]):
        if source[e] < 0:
            continue
        s = place[source[e]]
        found = -1
        if s >= 0:
            low, high = base[s], base[s + 1]
            if low < high and contiguous[s]:
                offset = np.int64(number[e]) - message_number[low]
                if 0 <= offset < high - low:
                    found = low + offset
            else:
                end = high
                while low < high:
                    middle = (low + high) // 2
                    if message_number[middle] < number[e]:
                        low = middle + 1
                    else:
                        high = middle
                if low < end and message_number[low] == number[e]:
                    found = low
        if found < 0:
            events[e] = GHOST
            ghosts += 1
        else:
            events[e] = 2 * found + 1
    return ghosts


@compiled
def find_labelled(source: Ints, number: Ints, message_of: Ints, events: Ints) -> Ints:
    """Give every delivery its message, by its opaque id; how many have none."""
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


@compiled
def sort_addresses(address_start: Ints, addresses: Ints) -> Ints:
    """Each message's addressees in ascending order, so that they can be searched."""
    for m in range(len(address_start) - 1):
        addresses[address_start[m] : address_start[m + 1]].sort()
