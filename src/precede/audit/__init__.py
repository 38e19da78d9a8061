"""The audit of a deployment: which order did real nodes keep, as far as their logs can tell?

A log of a deployment has instants of many clocks and no promise. The audit counts, for each group of receivers,
how many first copies came after a message that depends on them: at least and at most, over all orders that the
log allows.

deployment       the events of a log, and the first copies that follow from them
mobiclique       reads the log of MobiClique at SIGCOMM 2009
event_files      reads the log of any deployment from CSV or Parquet
copies           first copies as columns of integers
bounds           late copies, at least and at most
witness_orders   the two extreme orders that a log allows, judged by the witness
clocks           how far the clocks of nodes disagree, and which of them jumped
assumptions      every assumption, with the counts that change if it is dropped
study            all of it together

May import: core, files, witness
"""
