"""The Spark session and what every job needs of it.

* `session`: opens a session, embedded or on a cluster
* `existing`: the caller's session, that of `spark-submit`, one of a Connect server
* `java`: finds a Java that Spark can run on
* `tasks`: calls a function with 0, 1, 2, … in Spark tasks, or in this process
* `frames`: lake tables as DataFrames
"""
