"""The real world: asyncio driver, transports, codec, store, identity and keys.

May import: core, eventlog
"""
