"""The verifier on Spark.

It gives the same answers as `precede.verify` in one process. Independent orders (runs, topics) are verified in
parallel, each by one task; the nodes of one huge order are verified in parallel too.

* `answers`: the verdict about one order as a row, and one verdict from many rows
* `query`: the options of a verification, as they are sent to tasks
* `packing`: rows as packed blobs, so that Spark moves little
* `buckets`: the orders whose blobs came to one task
* `frames`: a DataFrame
* `one_order`: one huge order, node by node
* `bucket_files`: its files on the way from stage to stage
* `lake_tables`: the events of a lake, in a folder or an object store
* `files`: a log in files, for `precede verify --master`
* `follow`: a log that grows, for `precede verify --follow`
* `ledger`: what a follower has reported, so that it continues after a kill
"""
