"""The experiments of guidec2021: as `points`, their `measures`, and as `units` of work."""
