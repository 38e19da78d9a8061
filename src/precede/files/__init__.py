"""Opens files safely: those that strangers made (`inputs`), and those that nobody else may read (`private`).

`lines` reads the lines and fields of a stranger's file; `rejects` counts the rows of it that cannot be used.
`kernel_cache` loads the machine code of numba kernels.

May import: core
"""
