"""`precede verify --as`: the logs of other systems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from precede.core.errors import BadInput

MOBICLIQUE: Final = "mobiclique"

if TYPE_CHECKING:
    from precede.witness.verdict import Order
    from precede.witness.verify import VerifyOptions


def verify_foreign_log(
    log: str,
    format: str | None,
    order: Order | None,
    pattern: str | None,
    options: VerifyOptions,
    elsewhere: bool,
    as_json: bool,
) -> int:
    """Verify a log of another system, print the verdict, the counts and the agreement of the clocks.

    The user's own converters are found in the working directory. `elsewhere`: Spark is asked to read the log.
    """
    from precede.cli.evidence.verify import describe
    from precede.cli.progress import rows_of, working
    from precede.experiments.own_modules import allow_own_modules
    from precede.witness.foreign.log import verify_foreign

    if format is None:
        raise BadInput("--pattern needs --as shiviz")
    if elsewhere or options.get("by") or options.get("members"):
        raise BadInput("--as reads one log in this process: without --follow, --master, --by and --members")
    if format == MOBICLIQUE:
        return _verify_mobiclique(log, order, pattern, options, as_json)
    allow_own_modules()
    with working(f"verifying {log}", "rows", rows_of(Path(log))) as progress:
        read = verify_foreign(
            log,
            format,
            order,
            columns=cast("str | None", options.get("columns")),
            pattern=pattern,
            kinds=cast("str | None", options.get("kinds")),
            duplicates=options.get("duplicates", "forbid"),
            progress=progress,
        )
    counts, clocks = read.counts, read.agreement
    if as_json:
        fields = ("rows_read", "rows_kept", "rows_rejected", "reasons")
        said = {"read": {"as": format, **{name: getattr(counts, name) for name in fields}}}
        said |= {} if clocks is None else {"clocks": clocks.plain()}
        print(json.dumps(read.verdict.json() | said, indent=2))
    else:
        about_clocks = ["no clocks in it"] if clocks is None else clocks.lines()
        print(describe(log, read.verdict, [counts.rows(), *counts.rejected(), *about_clocks]))
    return 0 if read.verdict.holds else 1


def _verify_mobiclique(
    log: str, order: Order | None, pattern: str | None, options: VerifyOptions, as_json: bool
) -> int:
    """Verify the folder of the SIGCOMM 2009 deployment. Its rows have instants, of which many are equal.

    So the verdict is about every order that the log allows; `precede audit` counts more.
    """
    from precede.audit.bounds import ORDERS
    from precede.audit.mobiclique import is_mobiclique, read_mobiclique
    from precede.audit.witness_orders import judge_every_order
    from precede.cli.evidence.verify import describe
    from precede.cli.progress import working

    if pattern or options.get("columns") or options.get("kinds"):
        raise BadInput("--as mobiclique has no --pattern, --columns and --kinds")
    chosen = next((one for one in ORDERS if one == (order or "causal")), None)
    if chosen is None:
        raise BadInput(f"--as mobiclique: the order is {' or '.join(ORDERS)}, not {order}")
    if not is_mobiclique(Path(log)):
        raise BadInput(f"{log}: no folder with the files of MobiClique (messages.csv, reception.csv, …)")
    with working(f"verifying {log}"):
        deployment = read_mobiclique(Path(log))
        verdict = judge_every_order(deployment.copies(), chosen)
    read = {
        "messages": len(deployment.created),
        "unfollowed": deployment.unfollowed,
        "first_copies": len(deployment.first_copies),
        "first_copies_without_row": sum(not copy.is_row for copy in deployment.first_copies),
    }
    if as_json:
        print(json.dumps(verdict.json() | {"read": {"as": MOBICLIQUE, **read}}, indent=2))
    else:
        lines = [f"{count:,} {name.replace('_', ' ')}" for name, count in read.items()]
        lines.append("first copies stand for deliveries; events of one second may have any order")
        print(describe(log, verdict, [*lines, f"Next: precede audit {log}"]))
    return 0 if verdict.holds else 1
