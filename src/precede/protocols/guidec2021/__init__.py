"""Causal and delta-causal broadcast in opportunistic networks (guidec2021)."""
