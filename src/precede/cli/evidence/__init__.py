"""Verbs for checks: `verify` with `follow` and `foreign`, `audit`, `measure`, `reproduce`, the `exhibits`."""
