"""Seeded random worlds that check safety and liveness of every protocol."""
