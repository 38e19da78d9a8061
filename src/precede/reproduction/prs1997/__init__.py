"""The experiments of prs1997: points, measures, units of work."""
