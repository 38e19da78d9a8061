"""Emulation: real nodes under a scenario, compared with the simulation of the same scenario.

`precede.runtime.emulation` runs the nodes; this package plans for them and compares. In reading order: `plan`,
`replay`, `compare`, `explain`; `fates` draws loss and delay between foreign programs.
"""
