"""The experiments of guidec2021.

points     the experiments as points, a point and a seed as a run
measures   of the mobility and of the log
units      points as units of work
"""
