"""Mobility and contacts: parsers, writers, generators, the exact contact kernel, cells.

May import: core
"""
