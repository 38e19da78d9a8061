"""Topics: several ordered conversations over one membership and one set of links (docs/decisions/0037).

All topics of one order share a *lane*: one node with its driver and its store. The name of the topic is the
beginning of each payload, so the signature covers it. A lane announces what it holds in one digest, whatever
the number of its topics, so a quiet topic costs nothing on the wire.

In reading order: `topic_names`, `lane_plan`, `lane_links`, `topic_places`, `topic_messages`, `unopened`,
`lane`, `topic`, `topics`, `face`.
"""
