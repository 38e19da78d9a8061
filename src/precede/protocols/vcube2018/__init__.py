"""Causal broadcast over VCube trees with aggregation (vcube2018)."""
