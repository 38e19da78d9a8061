"""The shared types of Precede: identity, time, messages, effects, and the interface of a node.

A protocol is a `Node`: each input is a method call and returns a list of effects. A driver (the simulator,
the runtime) calls the node and carries the effects out with `EffectHandler`. Nothing here reads a clock, a
socket or a file, and everything is plain data or pure functions. The modules, in reading order:

* `identity`: node ids and message ids
* `instants`: time in whole microseconds, and written durations
* `messages`: messages, packets and what a signature covers
* `effects`, `frequent_effects`: what a node asks its driver to do
* `context`, `node`: what a node gets, and the inputs it answers
* `peaks`: the largest value of each size of a node
* `dispatch`: the loop that carries effects out
* `errors`: the errors a caller can act on
* `plan`, `transfers`: plain data that a simulation and an emulation exchange
* `settings`: declared settings: keys, defaults, bounds and help from one typed struct
* `randomness`, `natural_order`, `compiling`: named generators; a sort key for names; compiled modules

May import: nothing
"""
