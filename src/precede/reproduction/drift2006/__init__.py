"""The experiments of drift2006 as `points`, and their `measures`."""
