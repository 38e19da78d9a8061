"""The vocabulary every room speaks: identity, instants, messages, effects, the node.

May import: nothing
"""
