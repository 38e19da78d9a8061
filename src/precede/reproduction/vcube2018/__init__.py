"""The experiments of vcube2018: as `points`, their `measures`, and as `units` of work."""
