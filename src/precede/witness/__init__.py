"""The witness: an independent verifier of delivery orders, and explanations of their violations.

It reads the rows of any log and decides FIFO, causal, multicast-causal, Δ-causal and total order exactly. It
imports no protocol and no driver, so that a mistake there cannot hide here. docs/concepts/orders.md defines the
orders. In reading order: `verdict`, `history`, `reading`, `checks`, `explain`, `judgement`, `verify` (the
entrance), `many_logs`, `foreign` (logs of other systems), `live`.

May import: core, files, eventlog
"""
