"""Verbs that run real nodes over sockets: `node`, `top`, `station`, `host`, `keys`, `emulate`.

They share `arguments` (addresses and key files) and `lines` (standard input to broadcasts, deliveries to
standard output). `emulation_results` is what `emulate` reports; `programs` runs
foreign programs for it. `top_look` and `top_screen` are what `top` shows.
"""
