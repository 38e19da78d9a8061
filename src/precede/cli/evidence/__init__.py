"""Verbs for checks: `verify` with `follow` and `foreign`, `measure`, `reproduce` and the `exhibits`."""
