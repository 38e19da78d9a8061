"""Random logs of several independent orders; some have one of the errors that the verifier detects."""

from __future__ import annotations

from random import Random

import pyarrow as pa


def random_log(seed, groups=12, nodes=4, messages=12):
    """The rows of `groups` orders, shuffled; `topic` and `partition` identify the order."""
    generator = Random(seed)
    rows = []
    for group in range(groups):
        rows += _order(generator, {"topic": f"t{group % 3}", "partition": group // 3}, nodes, messages, group)
    generator.shuffle(rows)
    return rows


def _order(generator, labels, nodes, messages, kind):
    """One order: correct, or with a swap, a duplicate, a ghost, no broadcasts, or a gap in the steps."""
    rows = {f"n{node}": [] for node in range(nodes)}
    names = list(rows)
    counts = dict.fromkeys(names, 0)
    for _ in range(messages):
        source = generator.choice(names)
        counts[source] += 1
        message = (source, counts[source])
        rows[source].append(("broadcast", message))
        for name in names:
            rows[name].append(("delivered", message))
    wrong = kind % 6
    if wrong == 1:
        own = rows[names[-1]]
        places = [place for place, row in enumerate(own) if row[0] == "delivered" and row[1][0] != names[-1]]
        own[places[0]], own[places[-1]] = own[places[-1]], own[places[0]]
    elif wrong == 2:
        rows[names[0]].append(rows[names[0]][-1])
    elif wrong == 3:
        rows[names[0]].append(("delivered", (names[1], 99)))
    elif wrong == 4:
        rows = {name: [row for row in own if row[0] == "delivered"] for name, own in rows.items()}
    made = []
    for name, own in rows.items():
        for step, (event, (source, number)) in enumerate(own, 1):
            if wrong == 5 and name == names[0] and step == 2:
                continue
            made.append(
                {
                    **labels,
                    "who": name,
                    "step": step,
                    "kind": event,
                    "message_source": source,
                    "message_number": number,
                }
            )
    return made


def table_of(rows):
    return pa.Table.from_pylist(rows)
