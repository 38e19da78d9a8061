"""The experiments of guidec2021 as `points`, their `measures`, and a `trace` instead of towns."""
