"""Runs nodes over real sockets: an asyncio driver, links to neighbours, transports, a store on disk.

The same node classes run here as in the simulator, and the same event log comes out. A member is a node, its
driver, its store, and the links and transports that connect it to its neighbours.

Modules in reading order:
  group         one member of a group, as an application sees it
  settings      the settings of a member
  membership    keys and rosters: who belongs to the group
  rosters       rosters that an administrator signs
  names         members' names and their node ids
  notices       what the application should know about its group
  ticking       what a member does at intervals
  deliveries    hands delivered messages to the application
  driver        runs a node: inputs through one queue, effects in order
  departures    the sends and deliveries of a turn, until it is committed
  reception     decodes, checks and counts packets before the node receives them
  clock         a clock that never runs backwards, and timers
  taken_place   which delivered messages the application has taken
  store         the durable state of a node, in SQLite
  no_store      the interface of a store without a disk
  store_changes the changes of a store, and its journal
  store_lock    one process at a time; tells a copy of a store from the original
  store_upgrade a store of version 0.1 gets the present node ids
  rows          the event log of a real node
  codec         packets to bytes and back
  evidence/     what signatures cover, and proofs that a member signed two different messages with one id
  links/        neighbours, channels, encryption, signatures
  transports/   UDP, TCP, and the interface for others
  emulation/    real processes that run a simulated scenario

May import: core, files, eventlog
"""
