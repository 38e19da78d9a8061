"""Reads a log of any supported format into histories, the form that the checks work on.

column_names   maps the columns of a foreign log to ours
values         single values, checked
partitions     columns in folder names
streams        lines that two readers can share
csv_blocks     regular blocks of large CSV files, with pyarrow
logs           opens CSV, JSON lines and rows in memory
tables         opens Parquet files, Arrow tables and pandas frames
plain          builds histories in plain Python, for small logs
encode         Arrow columns as numpy arrays
kernels        numba kernels
processes      codes for nodes, groups and incarnations
row_store      stores rows and groups them by process
assembly       numbers messages and finds the message of each delivery
arrays         builds histories with numpy and numba, for large logs
"""
