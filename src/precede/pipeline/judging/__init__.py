"""The verifier on Spark.

It gives the same answers as `precede.verify` in one process. Independent orders (runs, topics) are verified in
parallel, each by one task; the nodes of one huge order are verified in parallel too. In reading order:
`answers`, `query`; many orders: `packing`, `buckets`, `frames`; one huge order: `one_order`, `bucket_files`;
what is verified: `lake_tables`, `files`; deployments: `audit_frames`.
"""
