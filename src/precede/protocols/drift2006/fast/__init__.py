"""The parts of DRIFT that are written for speed (`python -m benchmarks.drift`).

In reading order: `prepared` (what is read once for all receivers), `reception` (the first copy of a usual
flood), `machine_clock_table` (tables of clocks in machine words, for the compiled package).
"""
