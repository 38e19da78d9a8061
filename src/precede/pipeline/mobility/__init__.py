"""From trace files to contacts.

`precede ingest` reads files in a known format into the tables `segments`, `contacts` and `rejects` (`ingest`;
`generated` for a generated trace). `precede contacts` computes the exact contacts of a trace of movement for a
radio range (`contacts`). `segment_frames` and `contact_frames` do the same on DataFrames.
"""
