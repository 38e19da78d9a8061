"""The epidemic dissemination: store, carry and forward (guidec2021, section III).

Every node keeps a cache of messages. Two nodes in contact exchange summaries of their caches and send each
other the messages that the other lacks. In reading order: `options`, `packets`, `cache`, `transfer_order`,
`links`, `node`.
"""
