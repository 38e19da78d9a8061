"""`precede verify --as`: the logs of other systems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from precede.core.errors import BadInput

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
    from precede.cli.progress import working
    from precede.experiments.own_modules import allow_own_modules
    from precede.witness.foreign.log import verify_foreign

    if format is None:
        raise BadInput("--pattern needs --as shiviz")
    if elsewhere or options.get("by") or options.get("members"):
        raise BadInput("--as reads one log in this process: without --follow, --master, --by and --members")
    allow_own_modules()
    with working(f"verifying {log}"):
        read = verify_foreign(
            log,
            format,
            order,
            columns=cast("str | None", options.get("columns")),
            pattern=pattern,
            kinds=cast("str | None", options.get("kinds")),
            duplicates=options.get("duplicates", "forbid"),
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
