"""The witness on Spark: files, DataFrames, growing logs."""
