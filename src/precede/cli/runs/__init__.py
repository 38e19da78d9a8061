"""Verbs that run worlds."""
