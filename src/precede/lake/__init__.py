"""The lake: a folder of Parquet tables. This package alone knows files, paths and schemas.

Every table is declared once. One unit of a table (a trace, a run, a sweep) is one file. A unit appears whole or
not at all, and a job that was killed continues when it is run again. There is one reader, `Lake.read`, and one
writer, `Job.write`; pipeline, report, experiments and the commands use them.

* `schemas`: the ten tables, with type and meaning of every column
* `layout`: which file holds which unit; reading
* `integrity`: commit records: size, rows and digest of every file, compared before it is read
* `jobs`: writing: locks, scratch, atomic replacement, done marks
* `columns`: columns of node names as numbers
* `stored_contacts`: the contacts of a trace, as a scenario uses them
* `results`: the small tables of a lake, as a report uses them

May import: core, eventlog, traces
"""
