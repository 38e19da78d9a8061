"""Adaptive causal ordering by causal barriers (Prakash, Raynal, Singhal 1997): `prs` and `prs_mobile`.

A message carries, for each destination, the messages that must be delivered there first. PRS is a rule for the
node of the package `multicast`, which also has its rivals RST and SES. papers/prs1997/reading.md explains our
reading. In reading order: `options`, `packets`, `prs`, its variants `broadcast_rule` and `pruning_rule`,
`mobile_packets`, `mobile`.
"""
