"""One reader for each trace format: a generator of rows and rejects that counts into a summary.

Timetables: `gtfs` with `gtfs_feed`, `gtfs_motion`, `gtfs_chain`. Samples of positions: `gps`, `positions`.
Movement: `ns2`, `bonnmotion`, `walkers`, `one_movement`. Contacts: `one`, `tij`, `contact_csv`, `sightings` (of
Bluetooth), with `contact_rows`. `columns` says which column of a table holds what,
`plain_columns` parses regular tables by column.

May import: core
"""
