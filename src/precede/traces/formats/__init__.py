"""One reader for each trace format: a generator of rows and rejects that counts into a summary.

* `columns`: which column of a table holds what
* `gtfs`, `gtfs_feed`, `gtfs_motion`: timetables: the reader, the feed's tables, the motion of a vehicle
* `gps`, `positions`: samples of positions, in degrees and in metres
* `ns2`, `walkers`, `one_movement`: movement of ns-2, KTH walkers and The ONE
* `one`, `tij`, `contact_csv`: contacts of The ONE, of SocioPatterns and in CSV

May import: core
"""
