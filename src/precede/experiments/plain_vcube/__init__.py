"""An engine for one kind of run: VCube over the packet-switched network, where nothing disturbs the nodes.

These are the runs of vcube2018, section 5: every node is there from the beginning to the end, none fails, and
a packet can only take time. On the shared path each packet is an object with its messages, an effect, a landing
and an event. Here the messages of a world are numbered, a packet with one message is that number, and an event
is one machine word in the wheel of `sim.wheel_world`. Vector clocks and trees are the code of the protocol
(`protocols/vcube2018`); this package has its own text for what becomes a row or a packet, and for what waits.
The shared path is its oracle (tests/experiments/test_plain_vcube.py).

It is used where the package is compiled and nothing asks for more (`choosing`). In reading order:
`output`, `index`, `vertex`, `world`, `choosing`.
"""
