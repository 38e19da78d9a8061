"""Many runs: simulated, verified, measured and compared with claims.

In reading order: `sweep` is the whole job; runs as tasks: `simulate`, `marks`, `packs`, `deaths`, `verdicts`;
its tables: `tables`, `results`, `measures`, `groups`, `differences`, `compare`;
runs in a DataFrame: `run_frames`; random worlds: `swarm`, `worlds`.
"""
