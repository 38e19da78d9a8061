"""Scenario texts: worked examples as plain sentences, read, played and written.

The papers' figures and our regressions are such pages (`scenarios/`). Modules in reading order:

    text          the sentences: read and write a page
    player        plays a page with nodes, without a network
    cell_player   plays a page about radio cells
    from_log      writes the event log of a small world as sentences
"""
