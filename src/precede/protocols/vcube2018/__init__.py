"""VCube: causal broadcast over one tree per source, with aggregation (vcube2018).

The paper is by Araujo, Arantes, Duarte, Rodrigues and Sens (2018). Nodes are positions of a
hypercube, and each source has its own spanning tree. A node holds a message from a child that could not deliver
it yet, and sends it together with the message that was missing, in one packet. With the option `diagnosis`
nodes test each other, survive crashes, and may join and leave. `papers/vcube2018/reading.md` says how we read
the paper; decisions 0011 and 0051 have the departures.

Modules, in reading order:

options        the options
topology       clusters and trees
prepared       values derived from a message once
packets        the packets and their sizes
progress       vector clocks as rows of bit masks
awaited        waiting messages, indexed by one message they wait for
forwarding     CHECKAGG: forward or hold a message for each child
node           a node: broadcast, receive, CHECKDELIVERY
view           which nodes work
log            messages kept until all nodes have them
running_tests  tests that are not answered yet
orphans        messages that wait for a lost message
diagnosis      a node that survives crashes
entry          vcube as the registry knows it
"""
