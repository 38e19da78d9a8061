"""The shared types of Precede: identity, time, messages, effects, and the interface of a node.

A protocol is a `Node`: each input is a method call and returns a list of effects. A driver (the simulator, the
runtime) calls the node and carries the effects out with `EffectHandler`. Nothing here reads a clock, a socket
or a file, and everything is plain data or pure functions. In reading order: `identity`, `instants`, `messages`,
`effects`, `frequent_effects`, `context`, `node`, `writing_node`, `peaks`, `dispatch`, `errors`; what several
packages use: `plan`, `transfers`, `settings`, `randomness`, `natural_order`, `lazy`, `memory`, `compiling`.

May import: nothing
"""
