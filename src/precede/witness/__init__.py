"""The witness: an independent verifier of delivery orders, and explanations of their violations.

It reads the rows of any log and decides FIFO, causal, multicast-causal, Δ-causal and total order exactly. It
imports no protocol and no driver, so that a mistake there cannot hide here. docs/concepts/orders.md defines the
orders.

verdict     the result of a verification
history     the rows of one independent order as integers
reading/    reads a log into histories
checks/     the checks of the orders, in plain Python and with numba
explain     explains a violation by rows and a story
judgement   runs the checks and puts the verdict together
verify      the entrance: from a log to a verdict
live/       the live verifier, for a run that goes on

May import: core, files, eventlog
"""
