"""Runs completely described, scenarios and their player, the swarm, conformance.

May import: core, protocols, eventlog, traces, sim, witness, measures, lake
"""
