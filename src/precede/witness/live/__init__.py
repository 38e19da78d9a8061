"""The live verifier: verifies a run while it goes on, from rows that arrive in pieces, late or twice.

state      everything known about one run, which can be packed into bytes
intake     brings the rows of each process into the order of its steps
stories    explains violations from the rows counted so far
agreement  which members lack a message that another member delivered
live       counts rows, and reports violations
"""
