"""Causal broadcast for hosts in radio cells: WAS, and CK, with which it is compared (was2021)."""
