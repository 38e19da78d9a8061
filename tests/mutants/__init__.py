"""Mutants: small faults put into the source on purpose, and the tests that must notice them (`make mutants`).

`making` finds what can be bent in the text of a file, `coverage_map` the tests that run a line, `running` puts
one mutant in place and runs them, `table` writes docs/reference/mutants.md, `__main__` is the command.
"""
