"""The audit of a deployment: which order did real nodes keep, as far as their logs can tell?

A log of a deployment has instants of many clocks and no promise. The audit counts, for each group of receivers,
how many first copies came after a message that depends on them: at least and at most, over all orders that the
log allows. In reading order: `deployment`, `mobiclique`, `event_files`, `copies`, `bounds`, `witness_orders`,
`clocks`, `assumptions`, `story`, `study`; then what protocols would have done: `same_copies`, `same_links`,
`replay`.

May import: core, files, protocols, traces, witness, measures, experiments
"""
