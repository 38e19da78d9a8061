"""Workers that run other code than the command: a sweep says so, and does not repeat its runs for ever."""

from __future__ import annotations

import pytest

from precede import __version__
from precede.core.errors import BadInput
from precede.experiments.grid import read_grid
from precede.lake.layout import Lake
from precede.pipeline.sweeps import simulate
from precede.pipeline.sweeps.marks import SweepOptions
from precede.pipeline.sweeps.sweep import sweep
from tests.pipeline.test_sweep import write_spec

ROUNDS = 3


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """Returns a function that sweeps with workers of a version, and fails in the third round."""
    spec = write_spec(tmp_path, '[sweep]\nscenario = "short.toml"\nprotocol = "fifo"\nseeds = 2\n')
    lake, original, rounds = Lake(tmp_path / "lake"), simulate.spread, []

    def spread(*arguments):
        rounds.append(arguments)
        assert len(rounds) < ROUNDS, "the sweep repeats its runs for ever"
        return original(*arguments)

    def carry_out(version, same_code):
        monkeypatch.setattr(simulate, "spread", spread)
        monkeypatch.setattr(simulate, "made_by", lambda: version)
        return sweep(lake, read_grid(spec), None, SweepOptions(same_code=same_code))

    return carry_out


def test_a_sweep_whose_source_changes_while_it_runs_stops(swept):
    with pytest.raises(BadInput, match=rf"measured by {__version__}\+changed, not by {__version__}\+"):
        swept(f"{__version__}+changed", same_code=True)
    assert swept(f"{__version__}+changed", same_code=False).finished_before == 2


def test_a_sweep_whose_workers_have_another_version_stops(swept):
    with pytest.raises(BadInput, match=r"measured by 0\.0\.1\+old, not by"):
        swept("0.0.1+old", same_code=False)
