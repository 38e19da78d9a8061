"""Verbs that check: `verify` (`follow` is its option), `measure`, `reproduce` with the `exhibits` it writes."""
