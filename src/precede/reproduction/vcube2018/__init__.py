"""The experiments of vcube2018: points, measures, units of work."""
