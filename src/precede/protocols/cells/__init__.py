"""Hosts in radio cells whose stations act for them as proxies (prs1997, section 9).

A station keeps the order data of its hosts, stamps their messages, and sends a host each message when it may
deliver it. CK (was2021) and prs_mobile (prs1997) share this package and differ in a `ProxyRule`. WAS shares
its frames and routes. Decision 0017 has the reasons.

Modules, in reading order:

frames           size models of radio and wired packets, packets routed between stations
routes           routes between stations on their tree
jitter           random variation of timers
packets          the packets of hosts and proxy stations
options          the options of ck and prs_mobile
proxy_host       a mobile host
record           what a station knows about one host
rule             the ordering rule, where ck and prs_mobile differ
offers           messages at a station, sent to the hosts that may deliver them
central_discard  acknowledgements to initial stations, and Delete
record_moves     how a record follows its host
proxy_station    a station
"""
