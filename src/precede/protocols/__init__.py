"""The papers and their rivals as value machines, and the registry that builds them.

May import: core
"""
