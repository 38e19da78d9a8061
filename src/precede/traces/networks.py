"""A contact list as a temporal network: contacts as events, and as a graph of networkx."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from precede.core.errors import Unavailable
from precede.core.instants import SECOND, Instant
from precede.traces.contacts import ContactList
from precede.traces.writers import csv_field, seconds_text


class ContactEvent(NamedTuple):
    """A contact begins (`up`) or ends."""

    at_us: Instant
    up: bool
    a: str
    b: str


def contact_events(contacts: ContactList) -> list[ContactEvent]:
    """Return the begin and end of every contact, by time; at one instant ends come before begins."""
    events: list[ContactEvent] = []
    for a, b, start, end in contacts.rows():
        events += [ContactEvent(start, True, a, b), ContactEvent(end, False, a, b)]
    events.sort(key=lambda event: event[:2])
    return events


def write_events(contacts: ContactList, path: str | Path) -> None:
    """Write contacts as CSV `time,event,a,b`; an event is `up` or `down`, times are in seconds."""
    with Path(path).open("w", encoding="utf-8", newline="\n") as out:
        out.write("time,event,a,b\n")
        out.writelines(_lines(contacts))


def _lines(contacts: ContactList) -> Iterator[str]:
    for at, up, a, b in contact_events(contacts):
        yield f"{seconds_text(at)},{'up' if up else 'down'},{csv_field(a)},{csv_field(b)}\n"


def networkx_graph(contacts: ContactList) -> Any:
    """Return the contacts as a `networkx.Graph`: an edge for every pair that met.

    An edge has `contacts` (their number), `duration_s` (their sum) and `intervals`, a list of (start, end) in
    seconds. Nodes without contacts are in the graph too.

    >>> from precede.traces.contacts import contact_list
    >>> graph = networkx_graph(contact_list([("a", "b", 0, 2_000_000), ("b", "c", 5_000_000, 6_000_000)]))
    >>> graph.edges["a", "b"]["duration_s"], sorted(graph["b"])
    (2.0, ['a', 'c'])
    """
    try:
        import networkx
    except ModuleNotFoundError as error:
        raise Unavailable("a graph needs networkx, which is not installed: pip install networkx") from error
    graph = networkx.Graph()
    graph.add_nodes_from(contacts.names)
    for a, b, start, end in contacts.rows():
        if not graph.has_edge(a, b):
            graph.add_edge(a, b, contacts=0, duration_s=0.0, intervals=[])
        edge = graph.edges[a, b]
        edge["contacts"] += 1
        edge["duration_s"] += (end - start) / SECOND
        edge["intervals"].append((start / SECOND, end / SECOND))
    return graph


def write_graphml(contacts: ContactList, path: str | Path) -> None:
    import networkx

    graph = networkx_graph(contacts)
    for _, _, edge in graph.edges(data=True):
        del edge["intervals"]  # GraphML has no lists
    networkx.write_graphml_xml(graph, path)
