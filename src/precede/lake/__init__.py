"""The lake: Parquet tables in a folder or an object store. This package alone knows files, paths and schemas.

Every table is declared once. One unit of a table (a trace, a run, a sweep) appears whole or not at all, and a
job that was killed continues when it is run again. There is one reader, `Lake`, and one writer, `Job`; the
pipeline, the report, experiments and the commands use them.

* `schemas`: the tables, with type and meaning of every column
* `versions`: files of earlier versions
* `sql`: the tables for SQL engines, and views with timestamps and intervals
* `storage`: folders and object stores behind one small interface
* `commits`: commit records: which files are visible, and what they must be
* `integrity`: files compared with their records
* `logs`: logs in object stores, for the verifier
* `layout`: where units lie; reading
* `jobs`: writing
* `compaction`: fewer and larger files
* `columns`: columns of node names as numbers
* `stored_contacts`: the contacts of a trace, as a scenario uses them
* `results`: the small tables of a lake, as a report uses them

May import: core, eventlog, traces
"""
