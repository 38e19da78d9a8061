"""Reads a log of any supported format into histories, the form that the checks work on.

In reading order: `column_names`, `values`, `partitions`; opening a log: `streams`, `csv_blocks`, `logs`,
`tables`; `plain` builds histories of small logs in plain Python; those of large logs: `encode`, `kernels`,
`processes`, `row_store`, `assembly`, `arrays`.
"""
