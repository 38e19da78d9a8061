"""The synchronous face of a group, for scripts and notebooks: the event loop runs in a thread of its own.

In reading order: `loop_thread`, `blocking_iterator`, `blocking_topic`, `blocking_group`.
"""
