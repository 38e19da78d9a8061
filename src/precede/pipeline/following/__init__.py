"""The verifier on a log that grows: `precede verify --follow`, with Structured Streaming.

Rows come from files or from Kafka. Each batch goes to the live verifier (`precede.witness.live`), whose state
is stored in pieces by run and node; only what a batch changed is written. One small record commits a batch:
its state, its verdicts and its violations. In reading order: `rows`; where they come from: `segments`,
`messages`, `kafka_source`; judging: `state`, `standings`; what is stored: `ledger`, `metrics`; the streaming
query: `follow`.
"""
