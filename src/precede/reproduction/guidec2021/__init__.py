"""The experiments of guidec2021: `points`, `measures`, `series` for figures, a `trace` instead of towns."""
