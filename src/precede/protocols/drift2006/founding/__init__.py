"""Founding a group of DRIFT: the listed founders agree on its first view by Paxos.

The paper begins with a known set of sources. Here nodes that only share a list of names find out who takes
part, and nobody delivers before a quorum of the list has agreed. docs/concepts/total-order-groups.md has the
states.

numbers   the numbers of a list of founders and of a group: hashes, never clocks
ballots   Paxos among the founders, without timers: promises, acceptances, what is persisted
election  who leads a ballot and when; the founding of a group alone
"""
