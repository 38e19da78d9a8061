"""From trace files to contacts.

`precede ingest` reads files in a known format into the tables `segments`, `contacts` and `rejects`. `precede
contacts` computes the exact contacts of a trace of movement for a radio range.

* `ingest`: trace files into the lake
* `generated`: a generated trace into the lake
* `contacts`: segments to contacts, in slices of time
* `contact_frames`: the same on DataFrames
* `segment_frames`: positions in a DataFrame as segments
"""
