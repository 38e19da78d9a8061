"""Runs nodes over real sockets: an asyncio driver, links to neighbours, transports, a store on disk.

The same node classes run here as in the simulator, and the same event log comes out. A member is a node, its
driver, its store, and the links and transports that connect it to its neighbours.

In reading order: a member as an application sees it: `group`, `settings`, `membership`, `rosters`, `names`,
`notices`, `ticking`, `deliveries`; the driver of its node: `driver`, `departures`, `reception`, `clock`; its
store: `taken_place`, `store`, `no_store`, `store_journal`, `store_lock`, `store_upgrade`; its event log:
`rows`; its packets as bytes: `codec`; then `blocking`, `topics`, `history`, `transfer`, `flow`,
`presence`, `evidence`, `links`, `transports`, `guests`, `observe`, `emulation` and `programs`.

May import: core, files, eventlog
"""
