"""Verbs of the real world."""
