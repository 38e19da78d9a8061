"""One file per verb.

May import: core, protocols, eventlog, traces, sim, runtime, verify, measures, experiments, pipeline,
    report, api
"""
