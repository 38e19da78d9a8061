"""The epidemic dissemination: store, carry and forward (guidec2021, section III).

Every node keeps a cache of messages. Two nodes in contact exchange summaries of their caches and send each
other the messages that the other lacks.

    options         the options of `epidemic`
    packets         summaries and messages on the link
    cache           the messages a node carries, and the ids of those it evicted
    transfer_order  which messages of a transfer go first
    links           a peer in contact: the messages it lacks, and the one on its way
    node            the dissemination itself
"""
