"""WAS (was2021): packets, host, station and the three-phase handoff.

May import: core, protocols
"""
