"""Causal multicast to any destination set (prs1997 and its rivals).

A message names its destinations. A node delivers it after all messages to that node that causally precede it.
One node works for all algorithms; they differ in a `Rule`: what a message carries and when it may be delivered.
PRS itself is in the package prs1997. In reading order: `options`, `process`, `packets`, `address_book`, `rule`,
`vectors`, `journal`, `node`; the rivals: `destination_vectors`, `rst`, `ses`.
"""
