"""The measures of a run, from its rows: transit, wait, age, traffic, sizes, buffers.

`runs.measure_run(directory)` returns every measure of one run as one flat mapping. `measure_events` and
`measure_gauges` take a Parquet file or Arrow batches. They are the only definition of a measure: simulating
tasks and Spark jobs call them too. In reading order: `columns`, `statistics`, `paired`, `messages`, `delivery`,
`copies`, `energy`, `events`, `gauges`, `runs`, `one_stats`.

May import: core, eventlog
"""
