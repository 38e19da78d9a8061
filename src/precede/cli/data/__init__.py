"""Verbs of the data pipeline: `ingest`, `contacts`, `sweep`, `report`, `export`, `lake`; `spark` is what they
share.
"""
