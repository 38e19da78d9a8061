"""Where tables lie: layout, schemas, jobs.

May import: core, eventlog, traces
"""
