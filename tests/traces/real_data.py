"""The folder of real trace files: `PRECEDE_DATA`, else `../shared/data` next to the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("PRECEDE_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))

HOSPITAL = "sociopatterns_hospital/tij_hospital.dat.gz"
TAXIS = "cabspotting_60cabs_1day/cabspotting_20080521_60cabs.csv.gz"
BUSES_2016 = "gtfs_wta_bellingham_2016/wta_gtfs_20160920.zip"
BUSES_2019 = "gtfs_wta_bellingham_2019_dirty/wta_gtfs_20191004.zip"
BOTTLENECK = "pedpy_juelich/040_c_56_h-.txt.gz"
CORRIDOR = "pedpy_juelich/uo-050-180-180.txt.gz"
STUDENTS = "ucy_students03/obsmat.txt.gz"


def real(name: str) -> Path:
    """A real file, or a skipped test."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"no {name}: set PRECEDE_DATA to the folder of real traces")
    return path
