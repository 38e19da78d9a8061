"""Benchmarks: `python -m benchmarks.<name> --json`; `make bench` runs them all and writes RESULTS.md."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `precede` does: idle threads of numpy take CPU time
