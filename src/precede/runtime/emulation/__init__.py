"""Emulation: real nodes in real processes run through the plan of a simulated scenario.

In reading order: `play` is an emulation from start to end; `stage`, `processes`, `members`, `transfers`.
"""
