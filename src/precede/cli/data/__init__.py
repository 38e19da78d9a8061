"""Verbs for data: `ingest`, `contacts`, `sweep`, `report`, `export`, `lake`, `pack`; all share `spark`."""
