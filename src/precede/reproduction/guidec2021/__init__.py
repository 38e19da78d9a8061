"""The experiments of guidec2021: points, measures, units of work."""
