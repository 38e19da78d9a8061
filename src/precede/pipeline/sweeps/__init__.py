"""Many runs: simulated, verified, measured and compared with claims.

* `sweep`: a whole sweep as one job, for `precede sweep`
* `simulate`: the runs of a sweep as tasks
* `marks`: what is known about each run, from commit records
* `packs`: the runs of a task in one file per table
* `run_frames`: runs in a DataFrame to their rows in a DataFrame
* `deaths`: did a worker die of its run, or with its executor
* `verdicts`: the verdict about one run's log
* `results`: the lake's tables from the marks
* `measures`: measures as DataFrame code, and the means of groups of runs
* `groups`: the means of groups of runs without Spark
* `differences`: groups of runs compared with each other over shared seeds
* `compare`: measures compared with a claims file
* `swarm`: random worlds as tasks, for `precede swarm`
* `worlds`: the swarm into a lake, where each world counts once
"""
