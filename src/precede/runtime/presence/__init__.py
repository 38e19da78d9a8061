"""Presence: who of the group is heard, who left, and what is wrong with the set-up, as events.

In reading order: `group_event`, the value that an application gets; `event_feed`, which keeps the state and
hands events to subscribers; `presence`, which turns links and warnings into events;
`roster_face`, the methods of a group that change who belongs to it.
"""
