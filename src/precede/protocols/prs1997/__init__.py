"""Adaptive causal ordering by causal barriers (Prakash, Raynal, Singhal 1997): `prs` and `prs_mobile`.

A message carries, for each destination, the messages that must be delivered there first. PRS is a rule for the
node of the package `multicast`, which also has its rivals RST and SES. papers/prs1997/reading.md explains our
reading.

    options         the options of `prs` and `prs_mobile`
    broadcast_rule  the form for messages to all nodes (section 8.2)
    pruning_rule    the optimal pruning of Kshemkalyani and Singhal
    prs             the algorithm of section 5.2
    mobile          stations that act for mobile hosts (section 9)
"""
