"""The verdict about one order as a row (an *answer*), and one verdict from the answers about many orders."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.witness.verdict import Part, Verdict, Violation, shorten

ANSWER_DDL: Final = (
    "`order` string, verdict string, rows bigint, deliveries_checked bigint, violations bigint, "
    "counts map<string,bigint>, reasons array<string>, findings array<string>, first string"
)
"""The columns of an answer in SQL; `first` is the first violation as JSON, with its explanation."""

ANSWER_COLUMNS: Final = (
    *("order", "verdict", "rows", "deliveries_checked", "violations"),
    *("counts", "reasons", "findings", "first"),
)


def answer_schema() -> pa.Schema:
    texts = pa.list_(pa.string())
    types = (
        *(pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64()),
        *(pa.map_(pa.string(), pa.int64()), texts, texts, pa.string()),
    )
    return pa.schema(zip(ANSWER_COLUMNS, types, strict=True))


def answer_of(verdict: Verdict, rows: int) -> dict[str, Any]:
    """Convert a verdict to an answer; `rows` is the number of rows of its independent order."""
    plain = verdict.plain()
    first = plain["first"]
    return {name: plain[name] for name in ANSWER_COLUMNS} | {
        "rows": rows,
        "counts": list(plain["counts"].items()),
        "first": None if first is None else msgspec.json.encode(first).decode(),
    }


def combine(answers: Sequence[dict[str, Any]], by: Sequence[str]) -> Verdict:
    """Combine the answers about all orders of a log, which their `group` names by the columns `by`."""
    if not answers:
        raise BadInput("the log is empty (no rows)")
    answers = sorted(answers, key=lambda answer: [natural(text) for text in answer["group"]])
    parts = tuple(
        Part(
            tuple(zip(by, answer["group"], strict=True)),
            answer["verdict"],
            answer["deliveries_checked"],
            answer["violations"],
            tuple(answer["reasons"]),
        )
        for answer in answers
    )
    counts: dict[str, int] = {}
    for answer in answers:
        for kind, count in dict(answer["counts"]).items():
            counts[kind] = counts.get(kind, 0) + count
    verdicts = {answer["verdict"] for answer in answers}
    violated = next((answer for answer in answers if answer["violations"]), None)
    return Verdict(
        order=answers[0]["order"],
        verdict="violated" if "violated" in verdicts else "unknown" if "unknown" in verdicts else "holds",
        rows=sum(answer["rows"] for answer in answers),
        deliveries_checked=sum(answer["deliveries_checked"] for answer in answers),
        violations=sum(answer["violations"] for answer in answers),
        first=None if violated is None else _first_violation(violated, by),
        counts=counts,
        reasons=_shortened(reason for answer in answers for reason in answer["reasons"]),
        findings=_shortened(finding for answer in answers for finding in answer["findings"]),
        parts=parts if len(parts) > 1 else (),
    )


def _first_violation(answer: dict[str, Any], by: Sequence[str]) -> Violation:
    plain = msgspec.json.decode(answer["first"])
    return Violation.from_plain({**plain, "by": dict(zip(by, answer["group"], strict=True))})


def _shortened(texts: Iterable[str]) -> tuple[str, ...]:
    return shorten(list(dict.fromkeys(texts)))
