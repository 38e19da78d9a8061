"""Parquet files of the event log, written from what blocks of rows already know.

The blocks of the recorder have codes of names, bitmaps of the rows with a value, and columns of numbers.
Pages hold these nearly as they are, in whole bytes, and zstd makes them small. Arrow's writer counts, hashes
and packs every value again, in twice the time (decision 0043). In reading order: `thrift`, `pages`, `columns`,
`file`.
"""
