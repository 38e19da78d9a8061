"""The experiments of was2021: points, measures, units of work."""
