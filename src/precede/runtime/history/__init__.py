"""The messages that a member has delivered: how long they are kept, and how an application reads them again.

In reading order: `retention` (the settings), `kept` (one message with what is known about it), `database`
and `table` (where a store has them), `reading` (what `Group.history` returns) and `face` (the method),
`upkeep` (eviction, vacuum, rotation of the log) and `housekeeping` (all that is done now and then).
"""
