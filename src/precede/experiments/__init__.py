"""Experiments: from a scenario to a simulated run, and what is done with many runs.

A scenario file describes a world, a workload, faults and a protocol. It becomes a `Run`, which is plain data
with a stable id. Carrying out a run writes an event log. The swarm draws random runs and checks them; a sweep
is a grid of runs; an emulation compares a run with real nodes.

In reading order: the tables of a scenario file in `tables`, `keys`, `worlds`, `workload`, `faults`,
`run_table`; `run`, `contact_worlds`, `timed_contacts`, `instant_contacts`, `plain_vcube`, `measuring`; from a
file to a run: `own_modules`, `one_settings`, `scenario`; the public functions in `frames`, `simulation`,
`stored_sweep`; many runs: `grid`, `swarm`, `conformance`; `bundle`, `code_version`; `stories` and `emulation`;
`reference` writes docs/reference/scenario.md.

May import: core, files, protocols, eventlog, traces, sim, witness, measures, lake
"""
