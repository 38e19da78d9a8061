"""Numbers from rows: transit, wait, age, traffic, sizes, buffers.

May import: core, eventlog
"""
