"""The rules by which apps order a list of messages on a screen, as orderings over any dissemination.

None of them keeps causal order; docs/concepts/display.md defines what they are judged by. A rule shows a
message (the effect `Deliver`) at a place in a sorted list. If that place is not the bottom, an `Observe` with
the name `above` comes before it, about the message that is then directly below.

In reading order: `screen` (the sorted list), `rule` (what the sorting rules share), `arrival`, `timestamp`,
`lamport`, `bloom` (a filter of ids), `sds` (Scalable Data Sync).
"""
