"""The waist: row types, the recorder both drivers use, Arrow and Parquet.

May import: core
"""
