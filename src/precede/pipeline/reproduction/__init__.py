"""The experiments of a paper on Spark, for `precede reproduce`.

A unit of work is one point of an experiment with one seed. Each unit is run, verified and measured once
(`reproduce`); claims are then judged from the measures. `tables` writes the results into the lake.
"""
