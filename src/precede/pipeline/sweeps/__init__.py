"""Many runs: simulated, verified, measured and compared with claims.

In reading order: `sweep` is the whole job; runs as tasks: `simulate`, `marks`, `packs`, `deaths`, `verdicts`;
its tables: `results`, `measures`, `groups`, `differences`, `compare`; `run_frames` for runs in a DataFrame;
random worlds: `swarm`, `worlds`.
"""
