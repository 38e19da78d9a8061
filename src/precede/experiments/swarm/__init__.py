"""The swarm: seeded random worlds that check safety and liveness of every protocol.

One seed draws one world with loss, crashes and partitions. Later everything heals. The witness judges the event
log, and every message that is due must have been delivered.

    plan      what a seed draws, and which module draws for which protocol
    draw/     one module per family of protocols
    swarm     runs a plan and judges it
    due       which messages are due in a world of contacts
    shrink    makes a failing plan smaller
"""
