"""Experiments: from a scenario to a simulated run, and what is done with many runs.

A scenario file describes a world, a workload, faults and a protocol. It becomes a `Run`, which is plain data
with a stable id. Carrying out a run writes an event log. The swarm draws random runs and checks them; a sweep
is a grid of runs; an emulation compares a run with real nodes.

May import: core, files, protocols, eventlog, traces, sim, witness, measures, lake

Modules in reading order:

    tables         tables of a scenario file as written, with the line of each key
    keys           how the keys of a table are declared and read
    worlds/        the kinds of world and their keys
    workload       the `[workload]` table
    faults         the `[faults]` table
    run_table      the `[run]` table
    run            `Run`, and how one is carried out
    measuring      which part of a run is measured
    own_modules    modules of the user in the working directory
    one_settings   The ONE's settings files as scenarios
    scenario       from a scenario's name or file to a `Run`
    frames         results as frames of pandas, Polars or Arrow
    simulation     `precede.simulate`
    grid           sweeps
    stored_sweep   `precede.read_sweep`
    bundle         a run as a folder that can be carried out elsewhere
    code_version   which code made a result
    conformance    trials of a user's own protocol
    reference      writes docs/reference/scenario.md
    swarm/         random worlds that check every protocol
    stories/       worked examples as plain sentences
    emulation/     real nodes under a scenario
"""
