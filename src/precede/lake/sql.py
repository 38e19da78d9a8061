"""The tables of a lake for SQL engines: declarations with comments, and views with timestamps and intervals."""

from precede.eventlog.schema import FILE_VERSION
from precede.lake.schemas import TABLES, Table


def create_table(table: Table, lake: str) -> str:
    """Return the statement that declares a table of a lake in a Spark catalog, with a comment for each column.

    >>> from precede.lake.schemas import REJECTS
    >>> print(create_table(REJECTS, "s3a://bucket/lake"))  # doctest: +ELLIPSIS
    create table rejects (
      `trace` string comment 'name of the trace, as given to `precede ingest --name`',
    ...
    """
    columns = [f"  `{column.name}` {column.kind} comment {_text(column.meaning)}" for column in table.columns]
    facts = {"precede.schema_version": str(FILE_VERSION), "precede.sorted_by": ",".join(table.order)}
    properties = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in facts.items())
    return (
        f"create table {table.name} (\n"
        + ",\n".join(columns)
        + f"\n) using parquet\ncomment {_text(table.row)}\ntblproperties ({properties})\n"
        + f"location {_text(f'{lake}/{table.name}')}"
    )


def create_view(table: Table) -> str | None:
    """Return the statement for a view with all columns of a table and its times in SQL types.

    The view of the table events is events_times. Beside `at_us` it has the timestamp `at`, counted from
    1970-01-01 UTC, and the interval `at_elapsed` since time 0. Returns None for a table without times.
    """
    names = [column.name for column in table.columns if column.name.endswith("_us")]
    if not names:
        return None
    columns = ", ".join(["*", *time_columns(names)])
    return f"create or replace view {table.name}_times as\nselect {columns}\nfrom {table.name}"


def time_columns(names: list[str]) -> list[str]:
    """Return SQL expressions for columns of microseconds: a timestamp and an interval for each."""
    expressions = []
    for name in names:
        short = name.removesuffix("_us")
        expressions.append(f"timestamp_micros(`{name}`) as `{short}`")
        expressions.append(
            f"make_dt_interval(0, 0, 0, cast(cast(`{name}` as decimal(20, 0)) / 1000000 as decimal(18, 6)))"
            f" as `{short}_elapsed`"
        )
    return expressions


def statements(lake: str) -> list[str]:
    """Return the statements that declare all tables of a lake and their views."""
    views = (create_view(table) for table in TABLES.values())
    return [*(create_table(table, lake) for table in TABLES.values()), *(view for view in views if view)]


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
