"""Transfers, carried copies, energy and the age distribution of small worlds, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.measuring import measure_folder, measured_part
from precede.experiments.run import Run, carry_out, carry_out_into
from precede.measures.energy import Energy
from precede.measures.events import EventMeasures, measure_events
from precede.measures.gauges import measure_gauges
from precede.measures.messages import Window
from precede.measures.one_stats import one_stats

CHAIN = [["0", "1", "1s", "2s"], ["1", "2", "3s", "4s"], ["1", "3", "5s", "6s"]]


def chain(**changed: Any) -> Run:
    """Two messages for node 2: the first goes over node 1, the second is given to nobody before it expires."""
    script = [
        {"src": "0", "at": "500ms", "to": ["2"], "lifetime": "8s"},
        {"src": "0", "at": "2s", "to": ["2"], "lifetime": "8s"},
    ]
    fields: dict[str, Any] = {
        "protocol": "unordered",
        "world": {"kind": "contacts", "nodes": 4, "meetings": CHAIN},
        "workload": {"script": script, "size": 10},
        "options": {"dissemination": "spray_and_wait", "copies": 8},
        "end": "20s",
        "gauges": "1s",
    }
    return Run(**fields | changed)


def measured(run: Run) -> dict[str, Any]:
    sink = TableSink()
    outcome = carry_out(run, sink)
    part = measured_part(run, outcome.end_us)
    return {
        **measure_events(sink.events().to_batches(), *part),
        **measure_gauges(sink.gauges().to_batches(), part.window),
    }


def test_copies_are_counted_as_started_relayed_aborted_dropped_and_removed():
    result = measured(chain())
    # node 1 takes a copy, 2 its message, 3 the other half of node 1's copies
    assert (result["transfers_started"], result["relayed"], result["transfers_aborted"]) == (3, 3, 0)
    assert (result["overhead_ratio"], result["delivery_ratio"]) == (2.0, 1 / 2)
    assert (result["copies_dropped"], result["copies_removed"]) == (4, 0), "0 drops two, 1 and 3 one each"
    # carried by 0 for 8 s each, by 1 from 1 s to 8.5 s, by 3 from 5 s to 8.5 s
    assert result["buffer_time_us_mean"] == pytest.approx((8 + 8 + 7.5 + 3.5) / 4 * 1e6)
    assert result["payload_bytes"] == result["packet_bytes"] - result["control_bytes"] > 0


def test_a_transfer_that_a_contact_cuts_is_aborted():
    result = measured(chain(world={"kind": "contacts", "nodes": 4, "meetings": CHAIN, "overhead": "1500ms"}))
    assert (result["transfers_started"], result["relayed"], result["transfers_aborted"]) == (1, 0, 1)


def test_the_age_distribution_counts_expected_deliveries():
    result = measured(chain())
    within = {name: result[f"delivery_ratio_within_{name}"] for name in ("1s", "10s", "24h")}
    assert within == {"1s": 0.0, "10s": 0.5, "24h": 0.5}, "the age of the delivery is 2.5 s"
    assert (result["age_us_p50"], result["age_us_p90"]) == (2.5e6, 2.5e6)


def test_a_handed_over_copy_is_removed():
    result = measured(chain(options={"dissemination": "first_contact"}))
    assert (result["copies_removed"], result["copies_dropped"]) == (2, 1)


def test_buffers_are_measured_in_messages_and_bytes_under_every_dissemination():
    for routing in ("spray_and_wait", "epidemic"):
        result = measured(chain(options={"dissemination": routing}))
        assert result["buffer_occupancy_messages_peak"] == 2
        assert result["buffer_occupancy_bytes_peak"] == 20
        assert 0 < result["buffer_occupancy_bytes_mean"] < 20


def test_energy_is_scanning_time_and_bytes_of_both_ends():
    model = {"scan": 0.5, "transmit": 1.0, "receive": 2.0}
    result = measured(chain(energy=model))
    assert result["energy_scan_j"] == pytest.approx(4 * 0.5 * result["end_us"] / 1e6, rel=0.01)
    assert result["energy_transmit_j"] == result["packet_bytes"]
    assert result["energy_receive_j"] == 2 * result["packet_bytes"], "nothing was lost"
    parts = sum(result[f"energy_{part}_j"] for part in ("scan", "transmit", "receive"))
    assert result["energy_j"] == pytest.approx(parts)


def test_warm_up_and_cool_down_choose_the_messages_that_are_measured():
    for keys, expected in (
        ({"warmup": "1s"}, (1, 0.0)),
        ({"cooldown": "19s"}, (1, 1.0)),
        ({"warmup": "200ms", "cooldown": "1s"}, (2, 0.5)),
    ):
        result = measured(chain(**keys))
        assert (result["broadcasts"], result["delivery_ratio"]) == expected, keys
    late = measured(chain(warmup="1s"))
    assert (late["relayed"], late["copies_dropped"]) == (0, 1), "copies of the first message do not count"
    with pytest.raises(BadInput, match="leave nothing of 20 s to measure"):
        measured(chain(warmup="15s", cooldown="5s"))


def test_keys_about_measures_belong_to_the_run_but_do_not_change_older_ids():
    assert chain().id != chain(warmup="1s").id
    assert chain().id == chain(warmup=None, energy={}).id


def test_one_stats_has_the_lines_of_the_report_of_the_one():
    sink = TableSink()
    carry_out(chain(), sink)
    events = EventMeasures()
    for batch in sink.events().to_batches():
        events.add(batch)
    report = one_stats("chain", events.measures(), events.samples)
    assert report.splitlines() == [
        "Message stats for scenario chain",
        "sim_time: 10.0000",
        "created: 2",
        "started: 3",
        "relayed: 3",
        "aborted: 0",
        "dropped: 4",
        "removed: 0",
        "delivered: 1",
        "delivery_prob: 0.5000",
        "response_prob: 0.0000",
        "overhead_ratio: 2.0000",
        "latency_avg: 2.5000",
        "latency_med: 2.5000",
        "hopcount_avg: 2.0000",
        "hopcount_med: 2",
        "buffertime_avg: 6.7500",
        "buffertime_med: 8.0000",
        "rtt_avg: NaN",
        "rtt_med: NaN",
    ]


def test_the_command_prints_what_the_library_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    carry_out_into(chain(warmup="1s"), tmp_path / "run")
    assert main(["measure", str(tmp_path / "run"), "--as", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == dict(measure_folder(tmp_path / "run"))
    assert main(["measure", str(tmp_path / "run" / "events.parquet"), "--as", "one-stats"]) == 0
    assert "\ncreated: 1\n" in capsys.readouterr().out
    carry_out_into(chain(), tmp_path / "run")
    assert main(["measure", str(tmp_path / "run"), "--as", "cdf"]) == 0
    assert capsys.readouterr().out == "age_s,deliveries,share_of_expected\n2.5,1,0.5\n"
    assert main(["measure", str(tmp_path / "run")]) == 0
    assert "delivery_ratio" in capsys.readouterr().out
    assert main(["measure", str(tmp_path / "run"), "--only", "age_us_m", "--only", "delivery_ratio"]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["age_us_mean"] == "2.500 s"
    assert all("delivery_ratio" in name or "age_us_m" in name for name in shown)
    assert main(["measure", str(tmp_path / "run"), "--only", "agee"]) == 2
    assert "no measure has 'agee' in its name" in capsys.readouterr().err
    assert main(["measure", str(tmp_path / "nothing")]) == 2
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "run" / "run.json").write_text('{"run": 5}')
    assert main(["measure", str(tmp_path / "run")]) == 2
    assert "run.json: not the description of a run" in capsys.readouterr().err
    (tmp_path / "run" / "run.json").write_text("{}")
    assert main(["measure", str(tmp_path / "run")]) == 0


def test_a_wrong_model_of_energy_is_one_line(tmp_path: Path):
    from precede.experiments.scenario import read_scenario

    world = '[world]\nkind = "point_to_point"\nnodes = 2\n[workload]\nevery = "1s"\ncount = 1\n'
    world += '[run]\nprotocol = "fifo"\n'
    for text, cause in (
        ("energy = { scam = 1.0 }", "unknown key 'scam' .did you mean 'scan'"),
        ("energy = { scan = -1.0 }", "scan: expected a number of at least 0"),
        ("energy = 3", "expected a table"),
    ):
        (tmp_path / "s.toml").write_text(world + text + "\n")
        with pytest.raises(BadInput, match=rf"s.toml:9: .*{cause}"):
            read_scenario(str(tmp_path / "s.toml"))


def test_the_default_model_and_window_measure_everything():
    assert Energy() == Energy(1.6e-3, 1.3e-7, 1.3e-7)
    assert measured_part(chain(), 1) == (None, Energy())
    assert measured_part(chain(warmup="1s", cooldown="2s"), 20_000_000).window == Window(1_000_000, 18_000_000)
