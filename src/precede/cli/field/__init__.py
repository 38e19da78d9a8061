"""Verbs that run real nodes over sockets: `node`, `station`, `host`, `keys`, `emulate`.

They share `arguments` (addresses and key files) and `lines` (standard input to broadcasts, deliveries to
standard output). `emulation_results` is what `emulate` reports; `programs` runs
foreign programs for it.
"""
