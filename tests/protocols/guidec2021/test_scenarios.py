"""Scenarios of kind contacts, with contacts from a file or in the scenario, under several protocols."""

from pathlib import Path

import pytest

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import carry_out
from precede.experiments.scenario import read_scenario

SCENARIO = """
[world]
kind = "contacts"
contacts = "contacts.csv"
{more}
[workload]
messages = "messages.csv"
[run]
protocol = "delta_causal"
options = {{ lifetime = "20min" }}
"""


def written(folder: Path, more: str = "", contacts: str = "a,b,start,end\nn1,n2,10,20\nn2,n3,30,40\n") -> str:
    (folder / "s.toml").write_text(SCENARIO.format(more=more))
    (folder / "contacts.csv").write_text(contacts)
    (folder / "nodes.csv").write_text("node,enter,leave\nn1,0,100\nn2,0,35\nn3,0,100\n")
    (folder / "messages.csv").write_text("id,src,time\nm1,n1,5\nm2,n2,15\nm3,n1,60\n")
    return str(folder / "s.toml")


def counts(path: str, **settings: str) -> dict[str, int]:
    sink = TableSink()
    carry_out(read_scenario(path, settings=settings), sink)
    kinds = sink.events()["kind"].to_pylist()
    return {kind: kinds.count(kind) for kind in ("broadcast", "received", "delivered", "left")}


def test_contacts_and_messages_are_read_from_files(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert counts(path) == {"broadcast": 3, "received": 4, "delivered": 7, "left": 0}


def test_nodes_leave_at_the_times_in_the_nodes_file(tmp_path: Path) -> None:
    assert counts(written(tmp_path, 'nodes = "nodes.csv"'))["left"] == 3


def test_overhead_delays_transfers_past_the_end_of_a_contact(tmp_path: Path) -> None:
    assert counts(written(tmp_path), overhead="6s")["received"] == 2


@pytest.mark.parametrize("protocol", ["causal_barrier", "hash_dag", "unordered", "fifo", "vector_clock"])
def test_other_protocols_run_the_same_scenario(tmp_path: Path, protocol: str) -> None:
    sink = TableSink()
    carry_out(read_scenario(written(tmp_path), protocol), sink)
    assert sink.events()["kind"].to_pylist().count("received") == 4


@pytest.mark.parametrize(
    ("more", "contacts", "named_place"),
    [
        ("", "a,b,start,end\nn1,n2,1,2\nn1,n1,10,20\n", "contacts.csv:3"),
        ("", "a,b,start,end\nn1,n2,1,2\nn1,n2,20,10\n", "contacts.csv:3"),
        ('layout = "a"', "a,b,start,end\nn1,n2,10,20\n", "layout"),
        ('share = "all"', "a,b,start,end\nn1,n2,10,20\n", "share"),
        ('overhed = "1s"', "a,b,start,end\nn1,n2,10,20\n", "overhead"),
    ],
)
def test_an_error_names_the_place_of_the_bad_input(
    tmp_path: Path, more: str, contacts: str, named_place: str
) -> None:
    with pytest.raises(BadInput, match=named_place):
        counts(written(tmp_path, more, contacts))


def test_contacts_are_read_from_the_scenario_itself(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[world]\nkind = "contacts"\nnodes = 3\nmeetings = [["0", "1", "1s", "2s"], ["1", "2", "3s", "4s"]]\n'
        '[workload]\nscript = [{ src = "0", at = "0s" }]\n[run]\nprotocol = "causal_barrier"\n'
    )
    assert counts(str(tmp_path / "s.toml"))["received"] == 2
