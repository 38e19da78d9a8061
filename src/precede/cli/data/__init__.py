"""Commands of the data pipeline: from traces to sweeps and reports.

* `ingest`: `precede ingest`, trace files into the lake
* `contacts`: `precede contacts`, contacts for a radio range
* `sweep`: `precede sweep`, many runs on Spark
* `report`: `precede report`, a lake as a site
* `export`: `precede export`, figures and tables for a paper, a trace as a temporal network
* `lake`: `precede lake`, checks and merges the files of a lake
* `spark`: options, session and progress that these commands share
"""
