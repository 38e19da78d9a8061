"""The contact kernel compared with a brute-force oracle in exact arithmetic, to the microsecond."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.traces.kernel import Intervals, Segments, cut_time, find_contacts, merge_contacts
from tests.traces.contact_oracle import Contact, Segment, distance_squared, oracle_contacts


def columns(segments: list[Segment]) -> Segments:
    return Segments(*(np.array(c) for c in zip(*segments, strict=True)))


def rows(found: Intervals) -> list[Contact]:
    return list(zip(*(c.tolist() for c in found), strict=True))


def contacts(segments: list[Segment], reach: float) -> list[Contact]:
    return rows(find_contacts(columns(segments), reach))


def still(node: int, x: float, y: float, t0: int = 0, t1: int = 100 * SECOND) -> Segment:
    return node, t0, x, y, t1, x, y


def test_a_pass_through_the_middle_has_exact_ends():
    passing = (1, 0, -100.0, 0.0, 100 * SECOND, 100.0, 0.0)
    assert contacts([still(0, 0, 0), passing], 50) == [(0, 1, 25 * SECOND, 75 * SECOND)]


def test_a_tangential_touch_is_no_contact_and_a_slightly_nearer_pass_is_one():
    def passing(y: float) -> Segment:
        return 1, 0, -100.0, y, 100 * SECOND, 100.0, y

    assert contacts([still(0, 0, 0), passing(50.0)], 50) == []
    assert contacts([still(0, 0, 0), passing(50.0 + 1e-7)], 50) == []
    [(_, _, start, end)] = contacts([still(0, 0, 0), passing(50.0 - 1e-9)], 50)
    assert 0 < end - start < 1000


def test_a_convoy_at_exactly_the_range_is_one_contact_through_every_joint():
    convoy: list[Segment] = []
    for k in range(20):
        x0, x1, t0, t1 = 0.1 * k * 7, 0.1 * (k + 1) * 7, k * SECOND, (k + 1) * SECOND
        convoy += [(0, t0, x0, 0.1, t1, x1, 0.1), (1, t0, x0 + 30.0, 40.1, t1, x1 + 30.0, 40.1)]
    assert contacts(convoy, 50) == [(0, 1, 0, 20 * SECOND)]
    assert contacts(convoy, 49.999999) == []


def test_a_touch_at_the_range_that_lasts_counts_from_its_first_instant():
    comes = (1, 0, 60.0, 0.0, 10 * SECOND, 50.0, 0.0)
    stays = (1, 10 * SECOND, 50.0, 0.0, 30 * SECOND, 50.0, 0.0)
    goes = (1, 30 * SECOND, 50.0, 0.0, 40 * SECOND, 60.0, 0.0)
    assert contacts([still(0, 0, 0), comes, stays, goes], 50) == [(0, 1, 10 * SECOND, 30 * SECOND)]
    assert contacts([still(0, 0, 0), comes, goes], 50) == []


def test_absence_between_segments_splits_and_joining_segments_do_not():
    first, later = still(1, 10, 0, 0, 10 * SECOND), still(1, 10, 0, 20 * SECOND, 30 * SECOND)
    assert contacts([still(0, 0, 0), first, later], 50) == [
        (0, 1, 0, 10 * SECOND),
        (0, 1, 20 * SECOND, 30 * SECOND),
    ]
    joined = still(1, 20, 0, 10 * SECOND, 20 * SECOND)
    assert contacts([still(0, 0, 0), later, first, joined], 50) == [(0, 1, 0, 30 * SECOND)]


def test_a_pass_shorter_than_a_microsecond_is_no_contact_and_a_short_one_is_found():
    def passing(y: float) -> Segment:
        return 1, 0, -100.0, y, 1 * SECOND, 100.0, y

    half_chord = 200 * 5e-6
    [(_, _, start, end)] = contacts([still(0, 0, 0), passing(np.sqrt(2500 - half_chord**2))], 50)
    assert 9 <= end - start <= 11
    assert contacts([still(0, 0, 0), passing(np.sqrt(2500 - 1e-8))], 50) == []


def test_segments_without_duration_and_of_one_node_give_no_contacts():
    assert contacts([still(0, 0, 0), still(1, 0, 0, 5, 5)], 50) == []
    assert contacts([still(0, 0, 0), still(0, 1, 0)], 50) == []
    assert rows(find_contacts(columns([still(0, 0, 0)]), 50)) == []


@pytest.mark.parametrize(
    ("segment", "expected_text"),
    [
        ((0, 0, float("nan"), 0.0, 1, 0.0, 0.0), "coordinate"),
        ((0, 0, 0.0, 0.0, 1, float("inf"), 0.0), "coordinate"),
        ((0, 5, 0.0, 0.0, 4, 0.0, 0.0), "ends before"),
        ((-1, 0, 0.0, 0.0, 4, 0.0, 0.0), "node ids"),
        ((0, 0, 0.0, 0.0, 2**60, 0.0, 0.0), "142 years"),
    ],
)
def test_impossible_segments_are_bad_input(segment: Segment, expected_text: str):
    with pytest.raises(BadInput, match=expected_text):
        contacts([segment], 50)


@pytest.mark.parametrize("reach", [0.0, -1.0, float("nan"), float("inf")])
def test_the_range_must_be_a_positive_length(reach: float):
    with pytest.raises(BadInput, match="range"):
        contacts([still(0, 0, 0)], reach)


def random_world(seed: int) -> tuple[list[Segment], float]:
    """Walks with gaps, teleports and layovers, and among them the awkward passes, somewhere far from zero."""
    random = Random(seed)
    reach = random.choice([10.0, 50.0, 200.0, 33.3])
    ox, oy = random.choice([0.0, 5e5, -1234.567]), random.choice([0.0, 4.2e6, 0.1])
    side = random.choice([3, 8]) * reach
    world: list[Segment] = []
    for node in range(random.randint(6, 14)):
        t = random.randrange(0, 30 * SECOND)
        x, y = ox + random.uniform(0, side), oy + random.uniform(0, side)
        for _ in range(random.randint(1, 8)):
            if random.random() < 0.2:
                t += random.randrange(1, 20 * SECOND)
            t1 = t + random.choice([1, 17, SECOND, random.randrange(1, 60 * SECOND)])
            pace = random.choice([0.0, 1e-4, 1.3, 10.0, 300.0]) * (t1 - t) / SECOND
            x1, y1 = x + random.uniform(-pace, pace), y + random.uniform(-pace, pace)
            world.append((node, t, x, y, t1, x1, y1))
            t, x, y = t1, x1, y1
            if random.random() < 0.1:
                x, y = ox + random.uniform(0, side), oy + random.uniform(0, side)
    awkward = 100
    for _ in range(6):
        t0 = random.randrange(0, 60 * SECOND)
        t1 = t0 + 2 * random.randrange(1, 40 * SECOND)
        cx, cy = ox + float(random.randrange(0, 1000)), oy + float(random.randrange(0, 1000))
        speed = random.choice([1.0, 1.3, 7.25])
        length = speed * (t1 - t0) / SECOND
        offset = random.choice([reach, reach - 1e-9, reach + 1e-9, reach * 0.6, 0.0])
        other = random.choice([0.0, length, -length, length * (1 + 1e-12)])
        world.append((awkward, t0, cx, cy, t1, cx + length, cy))
        shift = random.choice([0.0, reach * 0.8, -reach])
        late = random.choice([0, 1, (t1 - t0) // 2])
        world.append((awkward + 1, t0 + late, cx + shift, cy + offset, t1, cx + shift + other, cy + offset))
        awkward += 2
    random.shuffle(world)
    return world, reach


@pytest.mark.parametrize("seed", range(50))
def test_random_worlds_give_the_contacts_of_the_oracle(seed: int):
    world, reach = random_world(seed)
    expected = oracle_contacts(world, reach)
    assert expected
    assert contacts(world, reach) == expected


@pytest.mark.parametrize("seed", range(0, 50, 7))
def test_the_oracle_agrees_with_fine_sampling(seed: int):
    world, reach = random_world(seed)
    expected = oracle_contacts(world, reach)
    random = Random(seed)
    for _ in range(2000):
        p, q = random.sample(world, 2)
        lo, hi = max(p[1], q[1]), min(p[4], q[4])
        if p[0] == q[0] or lo >= hi:
            continue
        t = random.randint(lo, hi)
        beyond = distance_squared(p, q, t) - Fraction(reach) ** 2
        pair = min(p[0], q[0]), max(p[0], q[0])
        in_contact = any(c[:2] == pair and c[2] <= t <= c[3] for c in expected)
        if abs(beyond) > 1e-3:
            assert in_contact == (beyond < 0) or overlapped(world, p, q, t)


def overlapped(world: list[Segment], p: Segment, q: Segment, t: int) -> bool:
    """At a joint, and only there, another segment of either node may tell otherwise."""
    return any(s[0] in (p[0], q[0]) and s not in (p, q) and s[1] <= t <= s[4] for s in world)


@pytest.mark.parametrize("seed", range(0, 50, 5))
def test_any_number_of_slices_gives_the_same_contacts(seed: int):
    world, reach = random_world(seed)
    segments = columns(world)
    whole = rows(find_contacts(segments, reach))
    random = Random(seed)
    for count in (2, 3, 7, 40):
        slices = cut_time(segments, count)
        assert len(slices) <= count
        parts = [find_contacts(segments, reach, begin, end) for begin, end in slices]
        random.shuffle(parts)
        assert rows(merge_contacts(parts)) == whole
    begin, end = 20 * SECOND, 50 * SECOND
    cut = [(a, b, max(s, begin), min(e, end)) for a, b, s, e in whole if s < end and e > begin]
    assert rows(find_contacts(segments, reach, begin, end)) == cut


def test_a_crowd_gives_the_contacts_of_the_oracle():
    random = Random(5)
    world: list[Segment] = []
    for node in range(60):
        x, y, t = random.uniform(0, 900), random.uniform(0, 900), 0
        for _ in range(6):
            x1, y1, t1 = random.uniform(0, 900), random.uniform(0, 900), t + random.randrange(20, 300) * SECOND
            world.append((node, t, x, y, t1, x1, y1))
            x, y, t = x1, y1, t1
    world.append((60, 0, -1e8, -1e8, SECOND, 1e8, 1e8))
    assert contacts(world, 50) == oracle_contacts(world, 50)


COORDINATE = st.integers(-40, 40).map(float) | st.floats(-200, 200, allow_subnormal=False)
INSTANT = st.integers(0, 12)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), INSTANT, COORDINATE, COORDINATE, st.integers(1, 12), COORDINATE, COORDINATE
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([5.0, 25.0, 50.0]),
    st.sampled_from([1, SECOND]),
)
def test_tiny_worlds_give_the_contacts_of_the_oracle(drawn: list[Segment], reach: float, unit: int):
    world = [(n, t * unit, x, y, (t + d) * unit, x1, y1) for n, t, x, y, d, x1, y1 in drawn]
    assert contacts(world, reach) == oracle_contacts(world, reach)


def test_distant_groups_and_large_node_ids_work():
    """Cells of two towns a thousand kilometres apart are hashed, not laid out; ids need not be dense."""
    random = Random(8)
    world: list[Segment] = []
    for k in range(24):
        x, y = random.uniform(0, 300) + 1e6 * (k % 2), random.uniform(0, 300) - 3e5 * (k % 2)
        for leg in range(4):
            x1, y1 = x + random.uniform(-90, 90), y + random.uniform(-90, 90)
            world.append((2**31 - 1 - 10**7 * k, leg * 40 * SECOND, x, y, (leg + 1) * 40 * SECOND, x1, y1))
            x, y = x1, y1
    expected = oracle_contacts(world, 60)
    assert len(expected) > 30
    assert contacts(world, 60) == expected


def test_one_node_with_very_many_segments_among_nodes_with_one():
    """Ten thousand pieces of a second each in one window: the same contact as in one piece."""
    pieces = [(0, k * 1000, 0.001 * k, 0.0, (k + 1) * 1000, 0.001 * (k + 1), 0.0) for k in range(10_000)]
    others = [(k, 0, 2.0 * k, 1.0, 20 * SECOND, 2.0 * k + 1, 3.0) for k in range(1, 40)]
    whole = (0, 0, 0.0, 0.0, 10 * SECOND, 10.0, 0.0)
    in_pieces, in_one = contacts(pieces + others, 10), contacts([whole, *others], 10)
    assert [row[:2] for row in in_pieces] == [row[:2] for row in in_one]
    ends = [[t for row in found for t in row[2:]] for found in (in_pieces, in_one)]
    assert ends[0] == pytest.approx(ends[1], abs=1)


def test_tangential_touches_from_all_directions_are_no_contacts():
    """Tangents at many angles, some a hair inside, some a hair outside: exactly as the oracle has it."""
    world: list[Segment] = [still(0, 0.0, 0.0, 0, 1000 * SECOND)]
    for k in range(60):
        angle, hair = k * 0.1047, (0.0, 1e-9, -1e-9, 1e-6, -1e-6)[k % 5]
        cx, cy = (50 + hair) * np.cos(angle), (50 + hair) * np.sin(angle)
        dx, dy = -200 * np.sin(angle), 200 * np.cos(angle)
        world.append((k + 1, k * SECOND, cx - dx, cy - dy, (k + 40) * SECOND, cx + dx, cy + dy))
    assert contacts(world, 50) == oracle_contacts(world, 50)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
from precede.traces.kernel import Segments, find_contacts
columns = np.load(sys.argv[1])
np.save(sys.argv[2], np.stack(find_contacts(Segments(*columns.values()), 30.0)))
"""


def test_without_numba_the_contacts_are_the_same_and_nothing_overflows(tmp_path):
    generator = np.random.default_rng(5)
    node, t0 = np.arange(200) % 40, np.arange(200) // 40 * 10_000_000
    x, y = generator.uniform(0, 300, 200), generator.uniform(0, 300, 200)
    far = x + generator.uniform(-40, 40, 200)
    far[7], x[9] = 9e8, -9e8  # boxes of more cells than 32 bits count
    segments = Segments(node, t0, x, y, t0 + 10_000_000, far, y + 5.0)
    np.savez(tmp_path / "segments.npz", *segments)
    line = [sys.executable, "-W", "error", "-c", WITHOUT_NUMBA]
    subprocess.run([*line, tmp_path / "segments.npz", tmp_path / "contacts.npy"], check=True, timeout=120)
    plain = np.load(tmp_path / "contacts.npy")
    assert plain.shape[1] > 50
    assert np.array_equal(plain, np.stack(find_contacts(segments, 30.0)))
