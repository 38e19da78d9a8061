"""The experiments of vcube2018.

points     the experiments as points, a point and a seed as a run
measures   packets, sizes, dependencies, latencies and buffers from rows
units      points as units of work
"""
