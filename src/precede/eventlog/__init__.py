"""The event log: one row for everything that happens to a node, written by the simulator and the runtime alike.

Everything that judges or measures a run (verification, measures, tables, pages) reads these rows and nothing
else. Rows are packed as numbers while a run goes on and become Arrow blocks in bounded memory. In reading
order: `schema`, `recorder`, `rows`, `steps`, `blocks`, `arrays`, `sinks`, `parquet`, `segments`;
`python_values` reads them back. For the compiled package: `machine_rows`, `machine_steps`.

May import: core
"""
