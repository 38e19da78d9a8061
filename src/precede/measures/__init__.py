"""The measures of a run, from its rows: transit, wait, age, traffic, sizes, buffers.

`measure_events` and `measure_gauges` take a Parquet file or Arrow batches and return a flat mapping. They are
the only definition of a measure: simulating tasks and Spark jobs call them too. In reading order: `columns`,
`statistics`, `paired`, `pairs`, `messages`, `delivery`, `hops` (`machine_paths` for the compiled package),
`copies`, `energy`, `events`, `gauges`, `one_stats`.

May import: core, eventlog
"""
