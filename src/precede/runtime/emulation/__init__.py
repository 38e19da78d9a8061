"""Emulation: real nodes in real processes run through the plan of a simulated scenario.

Modules in reading order:
  play        an emulation from start to end
  stage       a socket and a store for every node
  processes   forked processes, started, killed and stopped
  members     the nodes of one process and their schedule
  transfers   records what crossed the links, for comparison with a simulation
"""
