"""The checks of the orders, and the two engines that run them over one history.

In reading order: `integrity`, `fifo`, `causal`, `delta`, `total`, `agreement`, `display`; `engine` runs them in
plain Python, `numba_engine` compiled by numba, with `crowds` when the vector clocks do not fit into memory;
`pasts` for nodes that are judged independently.
"""
