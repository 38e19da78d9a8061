"""One reader per format of traces: each a generator of rows and rejects that counts into a summary.

May import: core
"""
