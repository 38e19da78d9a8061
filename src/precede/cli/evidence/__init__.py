"""Verbs that judge."""
