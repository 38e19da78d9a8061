"""The experiments of drift2006.

points     the experiments as points, a point and a seed as a run
measures   latencies and floods from rows
units      points as units of work
"""
