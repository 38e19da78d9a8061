"""Foreign programs as nodes: processes that speak JSON lines on stdin and stdout, as Maelstrom's nodes do.

In reading order: `carrier` puts programs through a plan and carries their messages over its links; `state` is
what it knows of each node; `program` is one process, within limits; `observed` is what the programs said they
broadcast and delivered; `guard` ends all processes if this one dies.
"""
