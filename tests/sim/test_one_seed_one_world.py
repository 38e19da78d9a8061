"""The same seed gives the same log, byte for byte: under any hash seed, in a subprocess, in a thread."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario

SCRIPT = """
import sys
from pathlib import Path
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario
carry_out_into(read_scenario("small-office", sys.argv[1], int(sys.argv[2])), Path(sys.argv[3]))
"""


def digest(folder: Path) -> str:
    return hashlib.sha256(
        (folder / "events.parquet").read_bytes() + (folder / "gauges.parquet").read_bytes()
    ).hexdigest()


def here(protocol: str, seed: int, folder: Path) -> str:
    carry_out_into(read_scenario("small-office", protocol, seed), folder)
    return digest(folder)


def elsewhere(protocol: str, seed: int, folder: Path, hash_seed: str) -> str:
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source}
    subprocess.run(
        [sys.executable, "-c", SCRIPT, protocol, str(seed), str(folder)], env=environment, check=True
    )
    return digest(folder)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["vector_clock", "fifo", "unordered"])
def test_the_log_is_the_same_everywhere(protocol: str, tmp_path: Path) -> None:
    first = here(protocol, 7, tmp_path / "here")
    with ThreadPoolExecutor(2) as pool:
        threads = [pool.submit(here, protocol, 7, tmp_path / f"thread{n}") for n in range(2)]
        seen = [thread.result() for thread in threads]
    hash_seeds = ("0", "1", "4711") if protocol == "vector_clock" else ("1",)
    seen += [elsewhere(protocol, 7, tmp_path / f"hash{seed}", seed) for seed in hash_seeds]
    assert set(seen) == {first}
    assert here(protocol, 8, tmp_path / "other") != first


def test_draws_of_one_link_do_not_depend_on_other_links(tmp_path: Path) -> None:
    """The first packet on a link takes the same time whatever other packets are sent."""
    import pyarrow.parquet as pq

    def first_arrivals(protocol: str) -> dict[tuple[str, str], int]:
        folder = tmp_path / protocol
        settings = {"loss": "0", "duplication": "0", "rto": "0s", "replies": "0"}
        run = read_scenario("small-office", protocol, 5, settings)
        carry_out_into(run, folder)
        rows = pq.read_table(folder / "events.parquet").to_pylist()
        sent: dict[tuple[str, str], int] = {}
        took: dict[tuple[str, str], int] = {}
        for row in rows:
            if row["kind"] == "sent":
                sent.setdefault((row["node"], row["peer"]), row["at_us"])
            elif row["kind"] == "packet_received":
                link = (row["peer"], row["node"])
                took.setdefault(link, row["at_us"] - sent[link])
        return took

    one, other = first_arrivals("unordered"), first_arrivals("vector_clock")
    alike = [link for link in one if one[link] == other.get(link)]
    assert len(alike) > 0.9 * len(one)
