"""The independent witness: exact verdicts from rows alone, explained.

May import: core, eventlog
"""
