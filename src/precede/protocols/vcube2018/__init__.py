"""VCube: causal broadcast over one tree per source, with aggregation (vcube2018).

The paper is by Araujo, Arantes, Duarte, Rodrigues and Sens (2018). Nodes are positions of a hypercube, and each
source has its own spanning tree. A node holds a message from a child that could not deliver it yet, and sends
it together with the message that was missing, in one packet. With the option `diagnosis` nodes test each other,
survive crashes, and may join and leave. `papers/vcube2018/reading.md` says how we read the paper; decisions
0011 and 0051 have the departures.

In reading order: `options`, `topology`, `sources`, `prepared`, `packets`, `progress`, `awaited`, `forwarding`,
`node`; with crashes: `view`, `log`, `running_tests`, `orphans`, `diagnosis`; `entry`. `machine_sources` does
what `sources` does, for the compiled package.
"""
