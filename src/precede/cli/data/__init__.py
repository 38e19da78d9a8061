"""Verbs of the data pipeline: `ingest`, `contacts`, `sweep`, `report`, `export`, `lake`, `pack`; `spark` is what
they share.
"""
