"""A paper's experiments on Spark."""
