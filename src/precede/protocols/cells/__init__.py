"""Hosts in radio cells whose stations act for them as proxies (prs1997, section 9).

A station keeps the order data of its hosts, stamps their messages, and sends a host each message when it may
deliver it. CK (was2021) and prs_mobile (prs1997) share this package and differ in a `ProxyRule`. WAS shares its
frames and routes. Decision 0017 has the reasons.

In reading order: `frames` and `routes`, which WAS uses too; `packets`, `options`, `proxy_host`; the
parts of a station: `record`, `rule`, `offers`, `central_discard`, `record_moves`, `proxy_station`.
"""
