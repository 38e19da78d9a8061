"""The lake: Parquet tables in a folder or an object store. This package alone knows files, paths and schemas.

Every table is declared once. One unit of a table (a trace, a run, a sweep) appears whole or not at all, and a
job that was killed continues when it is run again. There is one reader, `Lake`, and one writer, `Job`; the
pipeline, the report, experiments and the commands use them.

In reading order: the tables in `schemas`, `versions`, `sql`; the files in `storage`, `commits`, `integrity`,
`logs`; `layout` reads, `jobs` writes, `compaction` merges; readers of certain tables: `columns`,
`stored_contacts`, `results`.

May import: core, eventlog, traces
"""
