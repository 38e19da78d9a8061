"""Adaptive causal multicast by causal barriers (prs1997)."""
