"""Founding a group of DRIFT: the listed founders agree on its first view by Paxos.

The paper begins with a known set of sources. Here nodes that only share a list of names find out who takes
part, and nobody delivers before a quorum of the list has agreed. docs/concepts/total-order-groups.md has the
states. In reading order: `numbers` of lists and groups, `ballots` (Paxos, without timers), `election` (who
leads a ballot and when).
"""
