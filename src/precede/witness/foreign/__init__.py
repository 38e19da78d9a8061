"""Logs of other systems, read as they are: `precede verify LOG --as FORMAT`.

A converter turns the rows of one format into events: which node broadcast or delivered which message, in the
order of the file. The clocks that such logs carry never decide a verdict; they are compared with what the rows
say. docs/guides/logs-of-others.md shows each format and how to add one.

events               what a converter yields, and how it reads names, clocks and lines
shiviz               ShiViz and GoVector: an event, its host and its vector clock
etcd_watch           the responses of an etcd watch, as `etcdctl watch -w json` prints them
vector_clock_lines   JSON lines with a vector clock
csv_rows             CSV with a header
log                  the formats by name; opens a file or a folder as a log
clocks               compares the clocks of a log with its rows
"""
