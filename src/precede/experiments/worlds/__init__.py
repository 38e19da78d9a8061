"""The world kinds that a scenario can name."""
