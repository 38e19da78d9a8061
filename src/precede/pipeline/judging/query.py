"""A verification as it is sent to tasks: the options of the caller, checked against the columns of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from precede.core.errors import BadInput
from precede.pipeline.judging.answers import ANSWER_COLUMNS
from precede.witness.judgement import Facts
from precede.witness.reading.column_names import KNOWN, Layout, match_columns, read_by, read_kinds, read_mapping
from precede.witness.reading.logs import Log
from precede.witness.verdict import Duplicates, Order, Steps, Verdict, read_order
from precede.witness.verify import read_names, verify_each
from precede.witness.verify import verify as verify_log


class Query(Struct, frozen=True, kw_only=True):
    """The options of a verification, as they are sent to tasks.

    `broadcasts_elsewhere` and `deadlines_elsewhere` say that the whole log has some, even if this part has
    none.
    """

    order: Order = "causal"
    columns: Mapping[str, str] = {}
    by: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    steps: Steps = "counted"
    duplicates: Duplicates = "forbid"
    members: tuple[str, ...] = ()
    broadcasts_elsewhere: bool = False
    deadlines_elsewhere: bool = False

    def judge(self, log: Log, by: Sequence[str]) -> Verdict:
        """Verify a log, which may be a part of a larger one."""
        log.broadcasts_elsewhere = self.broadcasts_elsewhere
        log.deadlines_elsewhere = self.deadlines_elsewhere
        return verify_log(
            log,
            self.order,
            columns=self.columns,
            by=by,
            kinds=self.kinds,
            steps=self.steps,
            duplicates=self.duplicates,
            members=self.members or None,
        )

    def judge_each(
        self, log: Log, rows: Mapping[tuple[str, ...], int]
    ) -> tuple[dict[tuple[str, ...], Verdict], Facts]:
        """Verify the orders of a part of a log one by one (see `verify_each`)."""
        log.broadcasts_elsewhere = self.broadcasts_elsewhere
        log.deadlines_elsewhere = self.deadlines_elsewhere
        return verify_each(
            log,
            self.order,
            rows,
            columns=self.columns,
            by=self.by,
            kinds=self.kinds,
            steps=self.steps,
            duplicates=self.duplicates,
            members=self.members,
        )


def settle_query(
    available: Sequence[str],
    order: Order | None,
    *,
    by: str | Sequence[str] | None = None,
    columns: str | Mapping[str, str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    steps: Steps = "counted",
    duplicates: Duplicates = "forbid",
    members: str | Sequence[str] | None = None,
    keep_times: bool = False,
) -> tuple[Query, Layout]:
    """Check the caller's options against the available columns. Returns the query and the columns it uses.

    Deadlines and clocks are left out if the order does not need them, unless `keep_times`.
    """
    mapping, words = read_mapping(columns, "columns", KNOWN), read_kinds(kinds)
    layout = match_columns(available, "the DataFrame", mapping, read_by(by), words)
    if order is not None:
        read_order(order)
    if order == "display":
        raise BadInput("display order is judged in one process: leave --master and --follow out")
    taken = [name for name in layout.by if name in ANSWER_COLUMNS]
    if taken:
        raise BadInput(f"by: the column {taken[0]!r} would collide with the answer's; rename it")
    if (order or "causal") != "delta" and not keep_times:
        layout = layout.without("deadline_us", "clock_us")
    query = Query(
        order=order or "causal",
        columns=mapping,
        by=layout.by,
        kinds=read_mapping(kinds, "kinds", ("broadcast", "delivered")),
        steps=steps,
        duplicates=duplicates,
        members=() if members is None else read_names(members),
    )
    return query, layout
