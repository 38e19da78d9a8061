"""`precede top`: a running group in a terminal or on a page: who hears whom, what waits, what is violated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from precede.cli.parameters import Argument, Option


def command(
    members: Annotated[
        list[str] | None, Argument(help="HOST:PORT of each member (precede node --metrics HOST:PORT)")
    ] = None,
    log: Annotated[Path | None, Option(help="the folder of the members' event logs: verify them")] = None,
    order: Annotated[str, Option(help="the order that the logs must keep; with --log")] = "causal",
    every: Annotated[float, Option(min=0.1, help="seconds between two looks")] = 2.0,
    once: Annotated[bool, Option("--once", help="look once, print, and end")] = False,
    as_json: Annotated[bool, Option("--json", help="print a JSON object for each look")] = False,
    page: Annotated[
        str | None, Option(help="HOST:PORT on which a page shows the group instead of the terminal")
    ] = None,
    metrics: Annotated[str | None, Option(help="HOST:PORT on which Prometheus reads what --log found")] = None,
) -> int:
    """Watch a running group. With --log its order is verified as it runs, without Spark.

    With --once the exit code is 1 if there are violations.

    \b
    Example:
      precede node ana --open --bind 127.0.0.1:5001 --metrics 127.0.0.1:9101
      precede top 127.0.0.1:9101 --once
    """
    import asyncio

    from precede.cli.field.arguments import read_address
    from precede.cli.field.top_look import Looker, watch
    from precede.core.errors import BadInput
    from precede.runtime.observe.overview import read_endpoint
    from precede.witness.live.folder import FolderFollower
    from precede.witness.verdict import read_order

    if not members and log is None:
        raise BadInput("nothing to watch: give HOST:PORT of a member, or --log DIR")
    judged = read_order(order)
    if judged == "display":
        raise BadInput("--order display is judged when a log is complete: precede verify LOG --order display")
    if metrics is not None and log is None:
        raise BadInput("--metrics serves what --log finds; members have metrics of their own")
    follower = None if log is None else FolderFollower(log, judged)
    looker = Looker([read_endpoint(text) for text in members or []], follower)
    at = None if page is None else read_address(page, "--page")
    served = None if metrics is None else read_address(metrics, "--metrics")
    asyncio.run(watch(looker, every, once, as_json, at, served))
    return 1 if once and follower is not None and follower.counts else 0
