"""The live verifier: verifies a run while it goes on, from rows that arrive in pieces, late or twice.

In reading order: `ranges`, `state`, `intake`, `forget`, `stories`, `agreement`, `live`, `folder`.
"""
