"""Benchmarks: `python -m benchmarks.<name> --json`; `make bench` runs them all and writes RESULTS.md."""
