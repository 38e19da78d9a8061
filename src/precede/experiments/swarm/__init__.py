"""The swarm: seeded random worlds that check safety and liveness of every protocol.

One seed draws one world with loss, crashes and partitions. Later everything heals. The witness judges the event
log, and every message that is due must have been delivered. In reading order: `plan`, `draw`, `large_numbers`,
`swarm`, `events`, `promises`, `limits`, `ends`, `due`, `shrink`; `repro` and `repro_case` for the
smallest world in which a rule misorders.
"""
