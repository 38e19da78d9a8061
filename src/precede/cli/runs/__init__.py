"""Verbs that run worlds.

* `demo`: the whole pipeline on a bundled day of buses
* `simulate`: one run of a scenario
* `swarm`: random worlds, checked for safety and liveness
* `conform`: a protocol of the user's own, tested
* `bundle`: a run or a reproduction as a folder that stands alone
* `protocols`: what is there, with all options
"""
