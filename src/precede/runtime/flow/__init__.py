"""Flow: what an application may send, and when it has to wait before it sends more.

The module `sending` is all there is.
"""
