"""The experiments of prs1997.

points     the experiments as points, a point and a seed as a run, and its measures
units      points as units of work; adds runs until the interval is narrow
"""
