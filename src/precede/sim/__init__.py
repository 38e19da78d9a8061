"""The deterministic world: queue, networks, faults, workload, named randomness.

May import: core, eventlog, traces
"""
