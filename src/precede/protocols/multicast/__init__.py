"""Causal multicast to any destination set (prs1997 and its rivals).

A message names its destinations. A node delivers it after all messages to that node that causally precede it.
One node works for all algorithms; they differ in a `Rule`: what a message carries and when it may be delivered.
PRS itself is in the package prs1997.

    options              the options that all of them share
    address_book         which nodes are known, and in which incarnation
    rule                 the interface of a rule; processes, stamps and packets
    vectors              vectors without zeros, and the papers' operations on them
    journal              what a durable node persists
    node                 the node around a rule
    destination_vectors  what the rules of RST and SES share
    rst                  a matrix of sent counts (Raynal, Schiper, Toueg)
    ses                  a vector time per destination (Schiper, Eggli, Sandoz)
"""
