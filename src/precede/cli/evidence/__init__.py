"""Verbs for checks: `verify` with `follow` and `foreign`, `audit`, `measure`, `reproduce`.

`exhibits` and `paper_text` write what `reproduce` shows.
"""
