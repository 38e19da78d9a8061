"""`precede conform`: tests a user's own protocol in scenarios and the swarm, and compares it with ours."""

from typing import Annotated, Any

from precede.cli.parameters import Argument, Option


def command(
    target: Annotated[str, Argument(metavar="MODULE:NODE", help="a Node class, or an entry")],
    order: Annotated[str, Option(help="the order it promises")] = "causal",
    worlds: Annotated[int, Option(min=1, help="how many swarm worlds")] = 200,
    seed: Annotated[int, Option(help="the first world's seed")] = 1,
    as_json: Annotated[bool, Option("--json", help="print pages and rows as one JSON object")] = False,
) -> int:
    """Test your own protocol with worked examples and the swarm, and compare it with ours.

    NODE is a subclass of precede.core.node.Node that is built from a Context. Exit code 1 if it breaks its
    order, loses or repeats a message, or keeps a buffer full.

    \b
    Example:
      precede conform my_protocol:MyNode --order causal --worlds 100
      precede conform my_routing:DISSEMINATION --worlds 50
    """
    from precede.cli.progress import working
    from precede.core.errors import BadInput
    from precede.core.settings import did_you_mean
    from precede.experiments.conformance import (
        RIVALS,
        load_entry,
        load_own,
        rivals_of,
        try_pages,
        try_routing,
        try_swarm,
    )
    from precede.experiments.swarm.plan import ORDERINGS
    from precede.protocols import registry

    if order not in RIVALS:
        raise BadInput(f"--order {order}: none of {', '.join(RIVALS)}{did_you_mean(order, RIVALS)}")
    if isinstance(load_own(target), registry.DisseminationEntry):
        rows = []
        for ordering in ORDERINGS:
            with working(f"{ordering} over {target}", "worlds", worlds) as progress:
                rows.append(try_routing(target, ordering, worlds, seed, progress))
        return _judge([], rows, rows, as_json)
    expected_order: Any = order
    entry = load_entry(target, expected_order)
    pages = list(try_pages(entry))
    if not as_json:
        for page in pages:
            print(f"{page.result:<10} {page.page}{': ' + page.cause if page.cause else ''}")
    rows = []
    for one in [entry, *rivals_of(entry)]:
        with working(one.name, "worlds", worlds) as progress:
            rows.append(try_swarm(one, worlds, seed, progress))
    return _judge(pages, rows, rows[:1], as_json)


def _judge(pages: list[Any], rows: list[Any], mine: list[Any], as_json: bool) -> int:
    """Print a table of `rows` and the first failing world of `mine`. Return 1 if one fails or a page breaks."""
    failed = next((row for row in mine if row.first_failure is not None), None)
    conforms = failed is None and all(page.result != "breaks" for page in pages)
    if as_json:
        import msgspec

        print(msgspec.json.encode({"conforms": conforms, "pages": pages, "rows": rows}).decode())
        return 0 if conforms else 1
    _table(rows)
    if failed is not None:
        print(f"\nFirst failing world: {failed.protocol} seed {failed.first_failure.seed}")
        print("\n".join(failed.first_failure.remarks))
    return 0 if conforms else 1


def _table(rows: list[Any]) -> None:
    head = (
        "protocol",
        "worlds",
        "violations",
        "duplicates",
        "undelivered",
        "leaks",
        "age ms",
        "packets",
        "control B",
    )
    lines = [head]
    for row in rows:
        tally = row.tally
        lines.append(
            (
                row.protocol,
                *(
                    str(n)
                    for n in (tally.worlds, tally.violations, tally.duplicates, tally.undelivered, tally.leaks)
                ),
                _number(row.age_us_mean, 1000),
                _number(row.packets_per_delivery, 1),
                _number(row.control_bytes_mean, 1),
            )
        )
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    print()
    for line in lines:
        print(
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
        )
    print(
        "\nage: broadcast to delivered; packets: sent per delivery; control B: bytes of a packet beside payload"
    )


def _number(value: float | None, unit: float) -> str:
    return "-" if value is None else f"{value / unit:.1f}"
