"""Opens files safely: those that strangers made (`inputs`), and those that nobody else may read (`private`).

May import: core
"""
