"""One reader for each trace format: a generator of rows and rejects that counts into a summary.

* `columns`: which column of a table holds what
* `gtfs`, `gtfs_feed`, `gtfs_motion`, `gtfs_chain`: timetables: the reader, the feed's tables, the motion of a
  vehicle, trips joined into vehicles
* `gps`, `positions`: samples of positions, in degrees and in metres
* `ns2`, `bonnmotion`, `walkers`, `one_movement`: movement of ns-2, BonnMotion, KTH walkers and The ONE
* `contact_rows`: contacts from rows in any order, cleaned and merged
* `one`, `tij`, `contact_csv`, `sightings`: contacts of The ONE, of SocioPatterns, in CSV, of Bluetooth scans

May import: core
"""
