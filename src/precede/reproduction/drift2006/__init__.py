"""The experiments of drift2006: as `points`, their `measures`, and as `units` of work."""
