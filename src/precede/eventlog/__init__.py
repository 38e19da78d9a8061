"""The event log: one row for everything that happens to a node, written by the simulator and the runtime alike.

Everything that judges or measures a run (verification, measures, tables, pages) reads these rows and nothing
else. Rows are packed as numbers while a run goes on and become Arrow blocks in bounded memory. The modules, in
reading order:

* `schema`: the columns, and the kinds of rows
* `recorder`: from what happened to rows, and from rows to Arrow blocks
* `rows`, `machine_rows`: packed rows; the second is used where the package is compiled
* `blocks`: packed rows as columns of numbers
* `sinks`, `segments`: where blocks go: memory, Parquet files, a folder of segments

May import: core
"""
