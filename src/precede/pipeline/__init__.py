"""Spark, and nowhere else: session, schemas, ingest, contacts, sweeps, verdicts, measures.

May import: core, eventlog, traces, experiments, verify, measures
"""
