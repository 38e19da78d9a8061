"""Verbs of the data pipeline."""
