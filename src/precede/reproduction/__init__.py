"""The five papers held against their own words: claims, the runs that answer them, statuses.

May import: core, protocols, eventlog, traces, sim, witness, measures, experiments, lake
"""
