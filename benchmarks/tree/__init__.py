"""The protocol of `benchmarks.engine`: a message goes down the binomial tree of its source.

Modules: `packet`, `node` (also run compiled), `compiling` (compiles the engine and the node together).
"""
