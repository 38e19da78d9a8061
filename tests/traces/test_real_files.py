"""Real trace files: every row is counted, and the results match what their sources publish."""

from __future__ import annotations

import numpy as np
import pytest

from precede.core.instants import HOUR, SECOND
from precede.traces.reading import Loaded, Options, load
from tests.traces.real_data import (
    BOTTLENECK,
    BUSES_2016,
    BUSES_2019,
    CORRIDOR,
    HOSPITAL,
    STUDENTS,
    TAXIS,
    real,
)


def adds_up(loaded: Loaded) -> bool:
    s = loaded.summary
    return (
        s.rows_read == s.rows_kept + s.rows_rejected
        and s.rows_rejected == len(loaded.rejects)
        and s.segments == len(loaded.segments)
        and s.contacts == len(loaded.contacts)
    )


def test_the_hospital_has_75_people_and_exactly_14037_contacts():
    loaded = load(real(HOSPITAL), "tij")
    assert adds_up(loaded)
    assert (loaded.summary.rows_read, loaded.summary.rows_rejected) == (32424, 0)
    assert (loaded.summary.nodes, loaded.summary.contacts) == (75, 14037)
    contacts = loaded.contact_list()
    assert (contacts.nodes, len(contacts)) == (75, 14037)
    lengths = (contacts.end_us - contacts.start_us) / SECOND
    assert (lengths.min(), lengths.max(), float(np.median(lengths))) == (20, 3920, 20)
    assert lengths.mean() == pytest.approx(46.2, abs=0.05)
    assert len(set(zip(contacts.a.tolist(), contacts.b.tolist(), strict=True))) == 1139


def test_every_fix_of_the_taxis_is_kept_or_rejected():
    loaded = load(real(TAXIS), "gps")
    assert adds_up(loaded)
    assert (loaded.summary.rows_read, loaded.summary.nodes) == (53441, 60)
    assert loaded.summary.rows_rejected < 200
    presence = loaded.mobility().presence()
    assert len(presence.node) > 300, "off duty is absence, not a straight line"
    contacts = loaded.mobility().contacts(200)
    assert len(contacts) == pytest.approx(6385, rel=0.06), (
        "the source sampled every 10 s and missed short passes"
    )
    assert not any(row.t1_us - row.t0_us > 600 * SECOND for row in loaded.segments)


def test_a_monday_in_2016_has_848_trips():
    loaded = load(real(BUSES_2016), "gtfs", Options(date="2016-09-19"))
    assert adds_up(loaded)
    assert (loaded.summary.facts["trips"], loaded.summary.nodes) == ("848", 63)
    assert loaded.summary.rows_read == 1721 + 894 + 40739 + 24386 + 4 + 79
    mobility = loaded.mobility()
    s = mobility.segments
    speed = np.hypot(s.x1 - s.x0, s.y1 - s.y0) / ((s.t1_us - s.t0_us) / SECOND)
    assert np.quantile(speed, 0.999) < 40
    assert np.hypot(s.x1 - s.x0, s.y1 - s.y0).sum() / 1000 == pytest.approx(9558, rel=0.03)
    assert s.t0_us.min() == 5 * HOUR + 55 * 60 * SECOND
    contacts = mobility.contacts(200)
    lengths = (contacts.end_us - contacts.start_us) / SECOND
    assert len(contacts) == pytest.approx(3090, rel=0.02)
    assert lengths.mean() == pytest.approx(204, rel=0.02)


def test_the_bad_stop_of_2019_is_rejected_and_the_rest_kept():
    loaded = load(real(BUSES_2019), "gtfs", Options(date="20190923"))
    assert adds_up(loaded)
    [reject] = loaded.rejects
    assert reject.file.endswith("/stops.txt")
    assert reject.line == 276
    assert reject.reason.startswith("stop far outside the feed: 5614 'Britton Rd at Alice St'")
    assert (loaded.summary.facts["trips"], loaded.summary.nodes) == ("868", 61)
    assert loaded.summary.notes["calls at a rejected stop, passed between their neighbours"] > 0
    far = max(max(abs(row.x0), abs(row.y0)) for row in loaded.segments)
    assert far < 60_000, "nobody is sent to Central Asia"


@pytest.mark.parametrize(
    ("name", "options", "people", "rows", "range_m", "contacts"),
    [
        (BOTTLENECK, Options(), 75, 63110, 2.0, 2599),
        (CORRIDOR, Options(columns="id,frame,x,y,z", framerate=16.0, scale=0.01), 61, 9712, 2.0, 133),
        (STUDENTS, Options(), 428, 21846, 5.0, 9374),
    ],
)
def test_every_row_of_the_pedestrian_files_is_kept(name, options, people, rows, range_m, contacts):
    loaded = load(real(name), "positions", options)
    assert adds_up(loaded)
    assert (loaded.summary.nodes, loaded.summary.rows_read, loaded.summary.rows_kept) == (people, rows, rows)
    assert len(loaded.segments) == rows - people
    assert len(loaded.mobility().contacts(range_m)) == pytest.approx(contacts, rel=0.01)
