"""Emulation: real nodes under a scenario, compared with the simulation of the same scenario.

`precede.runtime.emulation` runs the nodes; this package plans for them and compares. Modules in reading order:

    plan      what happens to the nodes from outside: stays, links, messages
    replay    simulates again with the transfer times that real nodes measured
    compare   compares two event logs of one scenario
    explain   why a delivery is in one log and not in the other
"""
