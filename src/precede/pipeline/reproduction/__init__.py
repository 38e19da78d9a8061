"""The experiments of a paper on Spark, for `precede reproduce`.

A unit of work is one point of an experiment with one seed. Each unit is run, verified and measured once; claims
are then judged from the measures.

* `reproduce`: runs the units that are missing and compares with the claims
* `tables`: the lake's tables from the results
"""
