"""The checks of the orders, and the two engines that run them over one history.

integrity      no duplicate, no delivery before its broadcast or at a wrong node; the schedule of all rows
fifo           messages of one source in the order of broadcasting
causal         happened-before, in plain Python with sparse vectors
delta          no delivery after its deadline
total          the same order at all nodes, pair by pair
agreement      total order with a known membership: what one member delivers, all deliver
engine         runs the checks in plain Python
numba_engine   runs them compiled by numba, causal order with dense vector clocks
crowds         causal order with numba when the vector clocks do not fit into memory
pasts          the direct predecessors of messages, so that nodes can be judged independently
"""
