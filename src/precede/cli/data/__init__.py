"""Verbs of the data pipeline: `ingest`, `contacts`, `sweep`, `report`, `export`, `lake`, `pack`.

They share `spark`.
"""
