"""The experiments of drift2006: points, measures, units of work."""
