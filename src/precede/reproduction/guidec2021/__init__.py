"""The experiments of guidec2021 as `points`, and their `measures`."""
